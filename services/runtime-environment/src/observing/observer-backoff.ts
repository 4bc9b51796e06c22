import { createHash } from "node:crypto";

/** How an observer has fared, and when it is asked again by the schedule. */
export interface Attempts {
  /** Looks that failed in a row. */
  failures: number;
  /** Null: with every look. */
  retryAt: Date | null;
}

const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 600_000;
/** A pause is up to so much of it shorter, so that observers of one broken place don't come back in step. */
const JITTER = 0.5;

export const NO_FAILURES: Attempts = { failures: 0, retryAt: null };

/** One failed look more: each pause is twice as long as the one before. `jitter` is from 0 to 1. */
export function afterFailure({ failures: before }: Pick<Attempts, "failures">, at: Date, jitter: number): Attempts {
  const failures = before + 1;
  const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1));
  return { failures, retryAt: new Date(at.getTime() + pauseMs * (1 - JITTER * jitter)) };
}

/** Whether a look that only the interval asks for takes this observer along. */
export function isRipe({ retryAt }: Pick<Attempts, "retryAt">, now: Date): boolean {
  return retryAt === null || retryAt <= now;
}

/** From 0 to 1, always the same for a name. */
export function jitterOf(name: string): number {
  return createHash("sha256").update(name).digest().readUInt32BE() / 0xffff_ffff;
}
