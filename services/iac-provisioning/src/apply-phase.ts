import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { advanceRun, type RunExtras } from "./advance-run.ts";
import type { Context, ServiceUnit } from "./context.ts";
import { engineJob, follow, stateKeyOf } from "./engine-job.ts";
import { logLines } from "./engine-log.ts";
import type { ApplyOutcome, EngineSignals } from "./engines/engine.ts";
import type { Receipt } from "./engines/receipt.ts";
import { type ExecutorWork, type HeldRun, readHeld, RunLost } from "./held-run.ts";
import { lockEnvironment } from "./lock-environment.ts";
import { readPlannedChanges } from "./planned-changes.ts";
import { realise } from "./realise-specification.ts";
import { openReceiptJournal } from "./receipt-journal.ts";
import { underLease } from "./run-lease.ts";
import { openRunLog } from "./run-log.ts";
import { engineMode } from "./run-modes.ts";
import { applyEvent } from "./run-outcome.ts";
import type { Run } from "./run-row.ts";
import { sealOutputs } from "./sealed-plan.ts";
import { type ApplyingRun, startApply } from "./start-apply.ts";
import { supersedeIfOutdated } from "./supersede-specification.ts";

/** Applies a run that is approved, if its plan still holds; nothing for any other. */
export async function applyApproved(context: Context, work: ExecutorWork): Promise<void> {
  const held = await startApply(context, work);
  if (!held) return;
  try {
    await underLease(context, held, work.stop, async (signals) => {
      const { outcome, receipt } = await apply(context, held, signals);
      await finishApply(context, held, outcome, receipt);
    });
  } catch (error) {
    if (error instanceof RunLost) return context.logger.info({ runId: work.runId }, error.message);
    context.logger.error({ err: error, runId: work.runId }, "apply failed");
    await giveUpApply(context, held);
  }
}

async function apply(context: Context, held: ApplyingRun, signals: EngineSignals) {
  const { run, specification, desired, plan, planDigest } = held;
  const journal = await openReceiptJournal(context, held, await readPlannedChanges(context, held));
  const log = await openRunLog(context, held);
  await breakOrphanedLock(context, held);
  const key = stateKeyOf(specification);
  const password = await context.credentials.grant({
    holderId: run.id,
    key,
    epoch: run.executorEpoch,
    access: "write",
  });
  if (password === undefined) throw new RunLost(run);

  const engine = context.engines[desired.program.engine];
  const secrets = plan.sensitiveValues;
  const job = engineJob(context, { specification, desired, holderId: run.id, password, secrets, signals });
  const mode = engineMode(run.kind, run.mode);
  const outcome = await follow(engine.apply({ ...job, mode, artifact: plan.artifact, planDigest }), async (event) => {
    await journal.take(event);
    for (const line of logLines(engine.name, event)) await log.add(line);
  });
  await log.flush();
  return { outcome, receipt: journal.receipt() };
}

/** The environment is this run's alone: whoever else holds its state's lock died with it. */
async function breakOrphanedLock({ client, states, logger }: Context, { run, specification }: HeldRun): Promise<void> {
  const key = stateKeyOf(specification);
  const state = await client.engineState.findUnique({ where: { tenantId_environmentId_kind: key } });
  if (!state?.lockRunId || state.lockRunId === run.id) return;
  await states.breakLock(key, state.lockRunId);
  logger.warn({ runId: run.id, deadRunId: state.lockRunId }, "lock of a dead run broken");
}

async function finishApply(context: Context, held: HeldRun, outcome: ApplyOutcome, receipt: Receipt): Promise<void> {
  await unitOfWork(context, held.cause, async (unit) => {
    await lockEnvironment(unit.tx, held.run.tenantId, held.run.environmentId);
    const run = await readHeld(unit.tx, held);
    const event = applyEvent(run, outcome, receipt, unit.at);
    const ended = await advanceRun(context, unit, run, event, outputColumns(context, run, outcome));
    await settle(context, unit, ended);
  });
  await context.credentials.revoke(held.run.id).catch((err: unknown) => {
    context.logger.warn({ err, runId: held.run.id }, "credential left to its end");
  });
}

function outputColumns(context: Context, run: Run, { result, outputs, sensitiveOutputs }: ApplyOutcome): RunExtras {
  if (result !== "applied") return { executorUntil: null };
  const sealedOutputs = sealOutputs(context, run.id, sensitiveOutputs);
  return { executorUntil: null, outputs: { ...outputs }, sealedOutputs };
}

async function settle(context: Context, unit: ServiceUnit, run: Run): Promise<void> {
  if (run.state === "APPLIED") return realise(context, unit, run);
  if (run.state !== "INDETERMINATE") return supersedeIfOutdated(context, unit, run.specificationId);
}

/** A defect, or the database went away: nobody knows what was done. */
async function giveUpApply(context: Context, held: HeldRun): Promise<void> {
  const unknown: ApplyOutcome = { result: "indeterminate", outputs: {}, sensitiveOutputs: {} };
  await finishApply(context, held, unknown, []).catch((err: unknown) => {
    context.logger.warn({ err, runId: held.run.id }, "run left to its deadline");
  });
}
