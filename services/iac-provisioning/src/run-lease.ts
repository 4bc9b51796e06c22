import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import type { Context } from "./context.ts";
import { EXECUTOR_LOST } from "./deadline-kinds.ts";
import type { EngineSignals } from "./engines/engine.ts";
import { type HeldRun, LEASE_SECONDS } from "./held-run.ts";

const BEAT_MS = 3_000;
const SETTLE_MS = 1_000;

const beatRow = z.object({ state: z.string(), forceRequested: z.boolean(), until: z.date() });

/**
 * Does `work` while the run's lease is renewed. The signals that it gets interrupt the engine when the run is being
 * cancelled or lost, or when this process stops, and kill it when an operator asks for that or a lost engine doesn't
 * end within its grace.
 */
export async function underLease<T>(
  context: Context,
  held: HeldRun,
  stop: AbortSignal,
  work: (signals: EngineSignals) => Promise<T>,
): Promise<T> {
  const interrupt = new AbortController();
  const kill = new AbortController();
  const done = new AbortController();
  const onStop = () => interrupt.abort();
  stop.addEventListener("abort", onStop, { once: true });
  if (stop.aborted) onStop();
  const beating = beat(context, held, { interrupt, kill, done: done.signal });
  try {
    return await work({ interrupt: interrupt.signal, kill: kill.signal });
  } finally {
    done.abort();
    stop.removeEventListener("abort", onStop);
    await beating;
  }
}

async function beat(context: Context, held: HeldRun, { interrupt, kill, done }: BeatSignals): Promise<void> {
  let renewedAt = performance.now();
  while (await pause(BEAT_MS, done)) {
    const answer = await renew(context, held);
    if (answer === "away" && performance.now() - renewedAt < LEASE_SECONDS * 1_000) continue;
    if (answer === "away" || answer === "lost") {
      // A run that has just ended is nobody's either: its executor is about to say that it is done.
      if (!(await pause(SETTLE_MS, done))) return;
      context.logger.warn({ runId: held.run.id, answer }, "run lost: its engine is stopped");
      interrupt.abort();
      if (await pause(context.settings.CANCEL_GRACE_SECONDS * 1_000, done)) kill.abort();
      return;
    }
    renewedAt = performance.now();
    if (answer.state === "CANCELLING") interrupt.abort();
    if (answer.forceRequested) kill.abort();
  }
}

/** `away`: the database doesn't answer, so nobody knows. */
async function renew({ pool, arm, logger }: Context, { run }: HeldRun): Promise<Beat | "lost" | "away"> {
  try {
    const { rows } = await pool.query(RENEW, [run.id, run.executorEpoch, LEASE_SECONDS]);
    if (rows[0] === undefined) return "lost";
    const answer = beatRow.parse(rows[0]);
    arm(EXECUTOR_LOST, answer.until, { runId: run.id }).catch(() => undefined);
    return answer;
  } catch (err) {
    logger.warn({ err, runId: run.id }, "heartbeat failed");
    return "away";
  }
}

/** False when `done` came first. */
async function pause(ms: number, done: AbortSignal): Promise<boolean> {
  return wait(ms, true, { signal: done }).catch(() => false);
}

const RENEW = `
  UPDATE provisioning_run SET executor_until = clock_timestamp() + $3 * interval '1 second'
  WHERE id = $1 AND executor_epoch = $2 AND state IN ('PLANNING', 'APPLYING', 'CANCELLING')
  RETURNING state, force_requested AS "forceRequested", executor_until AS until`;

type Beat = z.output<typeof beatRow>;

interface BeatSignals {
  interrupt: AbortController;
  kill: AbortController;
  done: AbortSignal;
}
