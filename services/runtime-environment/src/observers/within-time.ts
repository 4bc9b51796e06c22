import { setMaxListeners } from "node:events";
import type { CallLimits } from "@runtime-cloud/eventing/peer";
import { ObservationFailed } from "./observer.ts";

/** One for all: an abort without a reason makes an error each time, and takes down where. */
const OVER = new Error("the work is over");

/**
 * Does work under a signal that is aborted when `signal` is, or after `timeoutMs`: with ObservationFailed then. Whoever
 * has half an answer by that time returns it; what doesn't listen to signals goes through untilAborted.
 */
export async function withinTime<T>(
  { signal, timeoutMs }: CallLimits,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  // Many requests of one look listen to it; Node would take them for a leak.
  setMaxListeners(0, limit.signal);
  const follow = () => limit.abort(signal?.reason);
  const timer = setTimeout(() => limit.abort(noAnswer(timeoutMs)), timeoutMs);
  if (signal?.aborted) follow();
  else signal?.addEventListener("abort", follow, { once: true });
  try {
    return await work(limit.signal);
  } finally {
    clearTimeout(timer);
    // Not AbortSignal.any: Node 20 keeps every dependent of a signal that lives long.
    signal?.removeEventListener("abort", follow);
    // Whatever the work left behind ends with it.
    limit.abort(OVER);
  }
}

/** Waits no longer than until the signal is aborted; then throws its reason, and what was waited for goes on unheard. */
export async function untilAborted<T>(waitedFor: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    leave = () => reject(reasonOf(signal));
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  });
  try {
    return await Promise.race([waitedFor, aborted]);
  } finally {
    if (leave) signal.removeEventListener("abort", leave);
  }
}

function reasonOf({ reason }: AbortSignal): Error {
  return reason instanceof Error ? reason : new Error("the look was aborted", { cause: reason });
}

function noAnswer(timeoutMs: number): ObservationFailed {
  return new ObservationFailed(`no answer within ${timeoutMs / 1_000} s`);
}
