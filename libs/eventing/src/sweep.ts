import { setTimeout as wait } from "node:timers/promises";

export interface Sweep {
  stop(): Promise<void>;
}

export interface SweepOptions {
  everyMs: number;
  /** Source of the jitter, from 0 to 1. */
  random: () => number;
  /** Must handle its own errors. */
  run: () => Promise<void>;
}

/** A sweep comes after 75 to 125 % of its interval, so that replicas don't sweep in step. */
const JITTER = 0.5;

/** Runs now and then again and again, by a timer of this process: it needs no queue. */
export function startSweep({ everyMs, random, run }: SweepOptions): Sweep {
  const stopping = new AbortController();
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      await run();
      const pauseMs = everyMs * (1 + JITTER * (random() - 0.5));
      await wait(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await loop;
    },
  };
}
