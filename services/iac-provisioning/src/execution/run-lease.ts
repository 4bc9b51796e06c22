import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import type { Context } from "../context.ts";
import { EXECUTOR_LOST } from "../deadline-kinds.ts";
import type { EngineSignals } from "../engines/engine.ts";
import type { HeldRun } from "./held-run.ts";
import { EngineStop } from "./run-stop.ts";

/** A lease outlives so many heartbeats that got lost. */
const BEATS_PER_LEASE = 5;
const SETTLE_MS = 1_000;
/** What a process that stops keeps of its grace, to write down how a killed engine ended. */
const RECORDING_SECONDS = 3;

const beatRow = z.object({
  state: z.string(),
  reason: z.string().nullable(),
  forceRequested: z.boolean(),
  until: z.date(),
});

/**
 * Does `work` while the run's lease is renewed. The signals that it gets carry an EngineStop as their reason. They
 * interrupt the engine when the run is cancelled or lost, when its phase takes too long, and when this process stops;
 * they kill it when an operator asks for that, or when it doesn't end within its grace. One that is cancelled has all
 * the time that the operator and its phase give it.
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
  const engine = { interrupt, kill, done: done.signal };
  const watches = [
    beat(context, held, engine),
    endInTime(context, held, engine),
    endWithProcess(context, stop, engine),
  ];
  try {
    return await work({ interrupt: interrupt.signal, kill: kill.signal });
  } finally {
    done.abort();
    await Promise.all(watches);
  }
}

async function beat(context: Context, held: HeldRun, engine: WatchedEngine): Promise<void> {
  const { interrupt, kill, done } = engine;
  const leaseMs = context.settings.EXECUTOR_LEASE_SECONDS * 1_000;
  let renewedAt = performance.now();
  while (await pause(leaseMs / BEATS_PER_LEASE, done)) {
    const answer = await renew(context, held);
    if (answer === "away" && performance.now() - renewedAt < leaseMs) continue;
    if (answer === "away" || answer === "lost") {
      // A run that has just ended is nobody's either: its executor is about to say that it is done.
      if (!(await pause(SETTLE_MS, done))) return;
      context.logger.warn({ runId: held.run.id, answer }, "run lost: its engine is stopped");
      return end(
        engine,
        new EngineStop("LOST", "the executor couldn't renew its lease"),
        context.settings.CANCEL_GRACE_SECONDS,
      );
    }
    renewedAt = performance.now();
    if (answer.state === "CANCELLING") interrupt.abort(cancelled(answer));
    if (answer.forceRequested) kill.abort(new EngineStop("FORCED", "force was asked for"));
  }
}

/** A timer goes by the monotonic clock, so nobody who sets the wall's ends a phase. */
async function endInTime({ settings }: Context, { run }: HeldRun, engine: WatchedEngine): Promise<void> {
  const { PLAN_TIMEOUT_SECONDS, APPLY_TIMEOUT_SECONDS, CANCEL_GRACE_SECONDS } = settings;
  const [seconds, text] =
    run.state === "APPLYING"
      ? [APPLY_TIMEOUT_SECONDS, "the apply took longer than APPLY_TIMEOUT_SECONDS"]
      : [PLAN_TIMEOUT_SECONDS, "planning took longer than PLAN_TIMEOUT_SECONDS"];
  if (!(await pause(seconds * 1_000, engine.done))) return;
  await end(engine, new EngineStop("TIMED_OUT", `${text} (${seconds} s)`), CANCEL_GRACE_SECONDS);
}

async function endWithProcess({ settings }: Context, stop: AbortSignal, engine: WatchedEngine): Promise<void> {
  if (!(await aborted(stop, engine.done))) return;
  const { CANCEL_GRACE_SECONDS, SHUTDOWN_GRACE_SECONDS } = settings;
  const graceSeconds = Math.max(0, Math.min(CANCEL_GRACE_SECONDS, SHUTDOWN_GRACE_SECONDS - RECORDING_SECONDS));
  await end(engine, new EngineStop("EXECUTOR_STOPPED", "the executor was stopped"), graceSeconds);
}

async function end({ interrupt, kill, done }: WatchedEngine, stop: EngineStop, graceSeconds: number): Promise<void> {
  interrupt.abort(stop);
  if (await pause(graceSeconds * 1_000, done)) kill.abort(stop);
}

function cancelled({ reason }: Beat): EngineStop {
  const text = reason?.replace(/^CANCELLED: /, "");
  return new EngineStop("CANCELLED", text === undefined ? "the run was cancelled" : `the run was cancelled: ${text}`);
}

/** `away`: the database doesn't answer, so nobody knows. */
async function renew({ pool, settings, arm, logger }: Context, { run }: HeldRun): Promise<Beat | "lost" | "away"> {
  try {
    const { rows } = await pool.query(RENEW, [run.id, run.executorEpoch, settings.EXECUTOR_LEASE_SECONDS]);
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

/** Waits for a signal's abort; false when `done` came first. */
async function aborted(signal: AbortSignal, done: AbortSignal): Promise<boolean> {
  if (signal.aborted) return true;
  return once(signal, "abort", { signal: done }).then(
    () => true,
    () => false,
  );
}

const RENEW = `
  UPDATE provisioning_run SET executor_until = clock_timestamp() + $3 * interval '1 second'
  WHERE id = $1 AND executor_epoch = $2 AND state IN ('PLANNING', 'APPLYING', 'CANCELLING')
  RETURNING state, reason, force_requested AS "forceRequested", executor_until AS until`;

type Beat = z.output<typeof beatRow>;

interface WatchedEngine {
  interrupt: AbortController;
  kill: AbortController;
  /** Aborts when the work is over. */
  done: AbortSignal;
}
