import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { advanceRun } from "../runs/advance-run.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { patiently } from "./database-patience.ts";
import { engineJob, follow } from "./engine-job.ts";
import { logLines } from "../run-streams/engine-log.ts";
import { applyFailed } from "../engines/engine-result.ts";
import type { ApplyOutcome, EngineSignals, Rescue } from "../engines/engine.ts";
import type { Receipt } from "../engines/receipt.ts";
import { type ExecutorWork, type HeldRun, readHeld, RunLost } from "./held-run.ts";
import { lockEnvironment } from "../environments/lock-environment.ts";
import { readPlannedChanges } from "../runs/planned-changes.ts";
import { realise } from "../specifications/realise-specification.ts";
import { openReceiptJournal } from "./receipt-journal.ts";
import { underLease } from "./run-lease.ts";
import { openRunLog } from "../run-streams/run-log.ts";
import { engineMode } from "../runs/run-modes.ts";
import { applyEvent } from "./run-outcome.ts";
import type { Run } from "../runs/run-row.ts";
import { type EngineStop, stopOf } from "./run-stop.ts";
import { rescueState } from "../recovery/salvage-state.ts";
import { outputColumns } from "./sealed-plan.ts";
import { type ApplyingRun, startApply } from "./start-apply.ts";
import { openStateForApply } from "./state-for-apply.ts";
import { supersedeIfOutdated } from "../specifications/supersede-specification.ts";

/** Applies a run that is approved, if its plan still holds; nothing for any other. */
export async function applyApproved(context: Context, work: ExecutorWork): Promise<void> {
  const held = await startApply(context, work);
  if (!held) return;
  try {
    await underLease(context, held, work.stop, async (signals) => {
      const { outcome, receipt } = await apply(context, held, signals);
      await finishApply(context, held, outcome, receipt, stopOf(signals));
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
  const password = await openStateForApply(context, held);

  const engine = context.engines[desired.program.engine];
  const secrets = plan.sensitiveValues;
  const job = engineJob(context, { specification, desired, holderId: run.id, password, secrets, signals });
  const mode = engineMode(run.kind, run.mode);
  const rescues: Rescue[] = [];
  const rescue = async (state: string) => {
    const rescued = await rescueState(context, held, state);
    rescues.push(rescued);
    return rescued;
  };
  const applying = engine.apply({ ...job, mode, artifact: plan.artifact, planDigest, rescueState: rescue });
  const outcome = await follow(applying, async (event) => {
    await journal.take(event);
    for (const line of logLines(engine.name, event)) await log.add(line);
  });
  const isPart = rescues.length > 0 && outcome.result === "applied" && journal.receipt().some(isUndone);
  if (outcome.result === "applied" && !isPart) await journal.complete();
  await journal.flush();
  await log.flush();
  return { outcome: isPart ? UNFINISHED : outcome, receipt: journal.receipt() };
}

/** An engine that could not write its state may keep the errors of its steps to itself. */
const UNFINISHED: ApplyOutcome = {
  result: "partially-applied",
  outputs: {},
  sensitiveOutputs: {},
  failure: {
    code: "STATE_PERSIST_FAILED",
    message: "the engine could not write its state and stopped; what it had done is recorded",
  },
};

function isUndone({ outcome, actions }: Receipt[number]): boolean {
  return outcome !== "APPLIED" && outcome !== "NO_OP" && !actions.includes("forget");
}

async function finishApply(
  context: Context,
  held: HeldRun,
  outcome: ApplyOutcome,
  receipt: Receipt,
  stop?: EngineStop,
): Promise<void> {
  const end = async (unit: ServiceUnit) => {
    await lockEnvironment(unit.tx, held.run.tenantId, held.run.environmentId);
    const run = await readHeld(unit.tx, held);
    const event = applyEvent(run, outcome, receipt, unit.at, stop);
    const outputs = outcome.result === "applied" ? outputColumns(context, run.id, outcome) : {};
    const ended = await advanceRun(context, unit, run, event, { executorUntil: null, ...outputs });
    await settle(context, unit, ended);
  };
  await patiently(context, () => unitOfWork(context, held.cause, end));
}

async function settle(context: Context, unit: ServiceUnit, run: Run): Promise<void> {
  if (run.state === "APPLIED") return realise(context, unit, run);
  if (run.state !== "INDETERMINATE") return supersedeIfOutdated(context, unit, run.specificationId);
}

/** A defect, or the database went away: nobody knows what was done. */
async function giveUpApply(context: Context, held: HeldRun): Promise<void> {
  const unknown = applyFailed("indeterminate", {
    code: "ENGINE_ERROR",
    message: "the executor failed while it applied: its log has the reason under this run's id",
  });
  await finishApply(context, held, unknown, []).catch((err: unknown) => {
    context.logger.warn({ err, runId: held.run.id }, "run left to its deadline");
  });
}
