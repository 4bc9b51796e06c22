import type { Logger } from "@runtime-cloud/service-kit/logger";
import type pg from "pg";
import type { Heard } from "./channel-listener.ts";
import { logBounds } from "./event-log.ts";
import { startSweep } from "../sweep.ts";

/** How far the log goes, as this process knows: what all its watchers wait on. */
export interface LogTip {
  readonly newest: bigint;
  /** For the log's channel. */
  heard: Heard;
  /** Told by whoever has seen the log go this far. */
  reach(sequence: bigint): void;
  /** Resolves once the log goes beyond a sequence, or after a time, or when the signal is aborted. */
  beyond(sequence: bigint, ms: number, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** Found by the look: what a lost notification announced. */
const LOOK_EVERY_MS = 5_000;

export function logTip(pool: pg.Pool, logger: Logger, random: () => number = Math.random): LogTip {
  let newest = 0n;
  const waiting = new Set<() => void>();

  function reach(sequence: bigint): void {
    if (sequence <= newest) return;
    newest = sequence;
    for (const wake of [...waiting]) wake();
  }
  async function look(): Promise<void> {
    try {
      reach((await logBounds(pool)).newest);
    } catch (err) {
      logger.debug({ err }, "the log's end can't be looked at now");
    }
  }
  const looks = startSweep({ everyMs: LOOK_EVERY_MS, random, run: look });

  return {
    get newest() {
      return newest;
    },
    reach,
    heard: (payload) => (payload === undefined ? void look() : reach(BigInt(payload))),
    beyond(sequence, ms, signal) {
      if (newest > sequence || signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          waiting.delete(wake);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        const timer = setTimeout(wake, ms);
        waiting.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    },
    stop: () => looks.stop(),
  };
}
