import { setTimeout as sleep } from "node:timers/promises";

const EVERY_MS = 25;

/** Asks `attempt` until it gives a value, and fails with `what` once `timeoutMs` are over. */
export async function until<T>(
  what: string,
  timeoutMs: number,
  attempt: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await attempt();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs / 1000} s in vain for ${what}.`);
    await sleep(EVERY_MS);
  }
}
