import { setTimeout as wait } from "node:timers/promises";

import { systemClock } from "@runtime-cloud/service-kit/clock";

const SECOND_MS = 1_000;

/** The first full second that is at least so far away. */
export function fullSecondAfter(ms: number): Date {
  return new Date(Math.ceil((systemClock.now().getTime() + ms) / SECOND_MS) * SECOND_MS);
}

/** Waits for an instant; answers when it came, in `performance.now()`. */
export async function reach(instant: Date): Promise<number> {
  await wait(instant.getTime() - systemClock.now().getTime());
  return performance.now() - (systemClock.now().getTime() - instant.getTime());
}
