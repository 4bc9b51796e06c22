import { setTimeout as wait } from "node:timers/promises";

export interface Steady {
  readonly perSecond: number;
  /** How many; without end, until `signal` aborts, when absent. */
  readonly count?: number;
  readonly signal?: AbortSignal;
}

/**
 * Starts one piece of work after the other at a steady rate, whether or not those before are done, so that a stall shows
 * in all that it holds up. Settles when all are done, with the rate at which they were really started.
 */
export async function steadily(
  { perSecond, count = Infinity, signal }: Steady,
  work: (index: number) => Promise<unknown>,
): Promise<number> {
  const underWay = new Set<Promise<unknown>>();
  const failures: unknown[] = [];
  const start = performance.now();
  let index = 0;
  for (; index < count && !signal?.aborted && failures.length === 0; index += 1) {
    const early = start + (index * 1_000) / perSecond - performance.now();
    if (early > 0) await wait(early, undefined, signal && { signal }).catch(() => undefined);
    if (signal?.aborted) break;
    const one: Promise<unknown> = work(index)
      .catch((error: unknown) => failures.push(error))
      .finally(() => underWay.delete(one));
    underWay.add(one);
  }
  const seconds = (performance.now() - start) / 1_000;
  await Promise.all(underWay);
  if (failures.length > 0) throw failures[0];
  return index / seconds;
}
