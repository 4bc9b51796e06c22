import type pg from "pg";
import { type LogEntry, type LogFilter, logBounds, readLog, refuseAhead, refuseExpired } from "./event-log.ts";
import type { LogTip } from "./log-tip.ts";

/** An entry that the filter lets through, or, without one, a sign of life. */
export interface WatchStep {
  entry?: LogEntry;
  /** Where to resume. */
  sequence: bigint;
}

export interface WatchOptions {
  pool: pg.Pool;
  tip: LogTip;
  filter: LogFilter;
  /** Undefined: from now on. 0: from the oldest that is kept. */
  afterSequence: bigint | undefined;
  /** Ends the watch. */
  signal: AbortSignal;
  heartbeatMs?: number;
  /** Milliseconds from any start. */
  elapsed?: () => number;
}

const HEARTBEAT_MS = 10_000;

/**
 * Follows the log until the signal is aborted, each entry once and in order. It reads the next page only when the last
 * entry of the one before was taken, so a slow watcher costs a page of memory and no more.
 *
 * Throws OutOfRange for a cursor that retention has overtaken, at the start or on the way, and for one that the log
 * hasn't come to.
 */
export async function* watchLog(options: WatchOptions): AsyncGenerator<WatchStep, void> {
  const { pool, tip, filter, signal, heartbeatMs = HEARTBEAT_MS, elapsed = () => performance.now() } = options;
  let sequence = await startOf(options);
  let spokeAt = elapsed();
  yield { sequence };
  while (!signal.aborted) {
    await tip.beyond(sequence, heartbeatMs, signal);
    if (tip.newest > sequence && !signal.aborted) {
      const { newest } = tip;
      const stretch = { above: sequence, below: newest + 1n };
      const { entries, rest } = await readLog(pool, filter, stretch, { cursor: sequence });
      for (const entry of entries) {
        spokeAt = elapsed();
        yield { entry, sequence: entry.sequence };
      }
      sequence = rest?.above ?? newest;
    }
    if (elapsed() - spokeAt >= heartbeatMs && !signal.aborted) {
      spokeAt = elapsed();
      yield { sequence };
    }
  }
}

async function startOf({ pool, tip, afterSequence }: WatchOptions): Promise<bigint> {
  const { newest, removed } = await logBounds(pool);
  tip.reach(newest);
  if (afterSequence === undefined) return newest;
  if (afterSequence === 0n) return removed;
  refuseAhead(afterSequence, newest);
  refuseExpired(afterSequence, removed);
  return afterSequence;
}
