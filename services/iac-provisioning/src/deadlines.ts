import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { provisioningRun } from "@runtime-cloud/state-machines/provisioning-run";
import type { RunEvent } from "@runtime-cloud/state-machines/provisioning-run-columns";
import { advanceRun } from "./runs/advance-run.ts";
import type { Context, Tx } from "./context.ts";
import { EXECUTOR_LOST, PLAN_EXPIRY, RUN_QUEUE_SWEEP } from "./deadline-kinds.ts";
import { runCause } from "./execution/held-run.ts";
import { enqueueReady } from "./runs/run-queue.ts";
import { type Run, unsealed } from "./runs/run-row.ts";

const BATCH = 100;
const SWEEP_MS = 15_000;
/** A program that takes so many executors with it is at fault itself. */
const MAX_LOST_PLANNERS = 5;

/** What ends by time in this service. */
export function deadlines(context: Context): Deadline[] {
  return [
    { kind: PLAN_EXPIRY, sweepEveryMs: SWEEP_MS, run: () => expirePlans(context) },
    { kind: EXECUTOR_LOST, sweepEveryMs: SWEEP_MS, run: () => loseExecutors(context) },
    { kind: RUN_QUEUE_SWEEP, sweepEveryMs: SWEEP_MS, run: () => enqueueForgotten(context) },
  ];
}

async function expirePlans(context: Context) {
  const due = await context.client.$queryRaw<Due[]>`
    SELECT id, tenant_id AS "tenantId", clock_timestamp() AS now FROM provisioning_run
    WHERE state IN ('AWAITING_APPROVAL', 'APPROVED') AND expires_at <= clock_timestamp()
    ORDER BY expires_at LIMIT ${BATCH}`;
  const ended = await endEach(context, PLAN_EXPIRY, due, (run, now) => {
    const waits = run.state === "AWAITING_APPROVAL" || run.state === "APPROVED";
    return waits && run.expiresAt && run.expiresAt <= now ? { type: "expire", at: now } : undefined;
  });
  return { ended, more: ended.length === BATCH };
}

async function loseExecutors(context: Context) {
  const due = await context.client.$queryRaw<Due[]>`
    SELECT id, tenant_id AS "tenantId", clock_timestamp() AS now FROM provisioning_run
    WHERE state IN ('PLANNING', 'APPLYING', 'CANCELLING') AND executor_until <= clock_timestamp()
    ORDER BY executor_until LIMIT ${BATCH}`;
  const ended = await endEach(context, EXECUTOR_LOST, due, async (run, now, tx) => {
    // A heartbeat may have come meanwhile; it doesn't change the row's version.
    if (!run.executorUntil || run.executorUntil > now) return undefined;
    const isFatal = run.state === "PLANNING" && (await lostPlanners(tx, run)) + 1 >= MAX_LOST_PLANNERS;
    return isFatal ? { type: "fail", at: now, reason: LOST } : { type: "loseExecutor", at: now };
  });
  return { ended, more: ended.length === BATCH };
}

/** How many planners were lost before. One that handed the run back, since it was stopped, was not. */
function lostPlanners(tx: Tx, { id, tenantId }: Run): Promise<number> {
  const lost = { event: "loseExecutor", toState: "QUEUED", actor: actorOf(EXECUTOR_LOST) };
  return tx.transition.count({ where: { tenantId, aggregate: provisioningRun.id, aggregateId: id, ...lost } });
}

async function enqueueForgotten(context: Context) {
  await enqueueReady(context);
  return { ended: [] };
}

/** One transaction a run: one that can't be ended holds up no other, and the next sweep tries it again. */
async function endEach(
  context: Context,
  kind: string,
  due: readonly Due[],
  eventFor: (run: Run, now: Date, tx: Tx) => Verdict | Promise<Verdict>,
): Promise<string[]> {
  const ended: string[] = [];
  for (const { id, tenantId, now } of due) {
    try {
      const cause = await runCause(context, { id, tenantId }, actorOf(kind));
      const event = await unitOfWork(context, cause, async (unit) => {
        const run = await unit.tx.provisioningRun.findUniqueOrThrow({ where: { id }, omit: unsealed });
        const event = await eventFor(run, now, unit.tx);
        if (event) await advanceRun(context, unit, run, event, { executorUntil: null });
        return event;
      });
      if (event) ended.push(id);
    } catch (err) {
      context.logger.warn({ err, kind, runId: id }, "run not ended by its deadline");
    }
  }
  return ended;
}

function actorOf(kind: string): string {
  return `deadline:${kind}`;
}

const LOST = `EXECUTOR_LOST: ${MAX_LOST_PLANNERS} executors in turn were lost while they planned it`;

type Verdict = RunEvent | undefined;

interface Due {
  id: string;
  tenantId: string;
  now: Date;
}
