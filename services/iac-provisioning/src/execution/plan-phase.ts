import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { RunEvent } from "@runtime-cloud/state-machines/provisioning-run-columns";
import { advanceRun, type RunExtras } from "../runs/advance-run.ts";
import { approvalDue } from "../runs/approval-rule.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { openDesiredState } from "../specifications/desired-state.ts";
import { engineJob, follow, stateKeyOf } from "./engine-job.ts";
import { logLines } from "../run-streams/engine-log.ts";
import type { EngineSignals, PlanOutcome } from "../engines/engine.ts";
import { failureFor } from "../engines/engine-stopped.ts";
import { type HeldRun, readHeld, RunLost } from "./held-run.ts";
import { lockEnvironment } from "../environments/lock-environment.ts";
import { recordPlannedChanges } from "../runs/planned-changes.ts";
import { realise } from "../specifications/realise-specification.ts";
import { underLease } from "./run-lease.ts";
import { openRunLog } from "../run-streams/run-log.ts";
import { engineMode } from "../runs/run-modes.ts";
import { planEvent } from "./run-outcome.ts";
import type { Run } from "../runs/run-row.ts";
import { type EngineStop, stopOf } from "./run-stop.ts";
import { outputColumns, sealPlan } from "./sealed-plan.ts";

/** Plans a run that this executor has just taken. */
export async function planHeld(context: Context, held: HeldRun, stop: AbortSignal): Promise<void> {
  const { id: runId } = held.run;
  try {
    await underLease(context, held, stop, async (signals) => {
      const outcome = await plan(context, held, signals);
      await finishPlanning(context, held, outcome, stopOf(signals));
    });
  } catch (error) {
    if (error instanceof RunLost) return context.logger.info({ runId }, error.message);
    context.logger.error({ err: error, runId }, "planning failed");
    await giveUpPlanning(context, held);
  }
}

async function plan(context: Context, held: HeldRun, signals: EngineSignals): Promise<PlanOutcome> {
  const { run, specification } = held;
  const desired = await openDesiredState(context, specification).catch((error: unknown) => failureFor(error));
  if ("code" in desired) return { result: "failed", failure: desired };

  const key = stateKeyOf(specification);
  const password = await context.credentials.grant({ holderId: run.id, key, epoch: run.executorEpoch, access: "read" });
  if (password === undefined) throw new RunLost(run);

  const engine = context.engines[desired.program.engine];
  const log = await openRunLog(context, held);
  const job = engineJob(context, { specification, desired, holderId: run.id, password, signals });
  const outcome = await follow(engine.plan({ ...job, mode: engineMode(run.kind, run.mode) }), async (event) => {
    for (const line of logLines(engine.name, event)) await log.add(line);
  });
  await log.flush();
  if (outcome.result === "planned") await recordPlannedChanges(context, held, outcome.changes);
  return outcome;
}

async function finishPlanning(context: Context, held: HeldRun, outcome: PlanOutcome, stop?: EngineStop): Promise<void> {
  await unitOfWork(context, held.cause, async (unit) => {
    const { tenantId, environmentId } = held.run;
    const environment = await lockEnvironment(unit.tx, tenantId, environmentId);
    const run = await readHeld(unit.tx, held);
    const unwanted = await whyUnwanted(unit, run);
    const event = planEvent(run, outcome, {
      at: unit.at,
      expiresAt: await planEnd(context, unit),
      approvalDue: approvalDue({
        ...run,
        environmentClass: environment.class,
        destructive: outcome.result === "planned" && outcome.destructive,
        reviewDestructive: held.specification.reviewDestructive,
      }),
      wanted: unwanted === undefined,
      stop,
    });
    const planned = await advanceRun(context, unit, run, event, planColumns(context, run, event, outcome));
    if (planned.state === "APPLIED") return realise(context, unit, planned);
    if (unwanted === undefined || (planned.state !== "AWAITING_APPROVAL" && planned.state !== "APPROVED")) return;
    await advanceRun(context, unit, planned, { type: "supersede", at: unit.at, reason: unwanted });
  });
}

function planColumns(context: Context, run: Run, event: RunEvent, outcome: PlanOutcome): RunExtras {
  if (event.type !== "plan" || outcome.result !== "planned") return { executorUntil: null };
  return {
    executorUntil: null,
    stateLineage: outcome.state.lineage,
    stateSerial: outcome.state.serial,
    ...(event.noChanges ? outputColumns(context, run.id, outcome) : { sealedPlan: sealPlan(context, run.id, outcome) }),
  };
}

async function planEnd({ settings }: Context, { tx }: ServiceUnit): Promise<Date> {
  const now = await transactionNow(tx);
  return new Date(now.getTime() + settings.PLAN_TTL_SECONDS * 1_000);
}

/** Whether a newer version was declared, or this one withdrawn, while the engine planned. */
async function whyUnwanted({ tx }: ServiceUnit, { specificationId: id }: Run): Promise<string | undefined> {
  const { state } = await tx.specification.findUniqueOrThrow({ where: { id } });
  const isWanted = state === "DECLARED" || state === "APPLIED";
  return isWanted ? undefined : `the specification became ${state} while it was being planned`;
}

/** A defect, or the database went away; in the latter case the lease ends and another executor plans. */
async function giveUpPlanning(context: Context, held: HeldRun): Promise<void> {
  const outcome: PlanOutcome = {
    result: "failed",
    failure: { code: "ENGINE_ERROR", message: "the executor failed: its log has the reason under this run's id" },
  };
  await finishPlanning(context, held, outcome).catch((err: unknown) => {
    context.logger.warn({ err, runId: held.run.id }, "run left to its deadline");
  });
}
