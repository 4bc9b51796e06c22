import { secondsAfter } from "@runtime-cloud/eventing/database-clock";

/** Between two questions about an accepted proposal: pauses double from one to the other. */
export const FIRST_ASK_SECONDS = 5;
export const LONGEST_PAUSE_SECONDS = 300;

/** When to ask again after `asks` times. */
export function nextAsk(at: Date, asks: number): Date {
  return secondsAfter(at, Math.min(FIRST_ASK_SECONDS * 2 ** asks, LONGEST_PAUSE_SECONDS));
}
