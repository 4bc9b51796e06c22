import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { ProvisioningRun, Specification } from "../../generated/prisma/client.ts";
import { advanceRun } from "../runs/advance-run.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { EXECUTOR_LOST } from "../deadline-kinds.ts";
import type { DesiredState } from "../specifications/desired-state.ts";
import { type ExecutorWork, type HeldRun, startLease } from "./held-run.ts";
import { lockEnvironment } from "../environments/lock-environment.ts";
import { type KeptPlan, openPlan } from "./sealed-plan.ts";
import { readStateIdentity, surveyGround, type Survey, whyStale } from "./still-holds.ts";

/** A run whose plan this executor has taken out and is about to apply. */
export interface ApplyingRun extends HeldRun {
  desired: DesiredState;
  plan: KeptPlan;
  planDigest: string;
}

/**
 * Takes an approved run's plan, once: its sealed form is gone when the apply begins. A plan that no longer holds, or
 * whose time is over, ends its run here. Undefined when there is nothing to apply.
 */
export async function startApply(context: Context, { runId, cause }: ExecutorWork): Promise<ApplyingRun | undefined> {
  const waiting = await context.client.provisioningRun.findUnique(approved(runId));
  if (!waiting) return undefined;
  const survey = await surveyGround(context, waiting.specification);

  return unitOfWork(context, cause, async (unit) => {
    await lockEnvironment(unit.tx, waiting.tenantId, waiting.environmentId);
    const run = await unit.tx.provisioningRun.findUnique(approved(runId));
    if (!run || (await endIfVoid(context, unit, run, survey)) || !survey.found) return undefined;

    const { specification, sealedPlan, planDigest } = run;
    if (sealedPlan === null || planDigest === null) throw new Error(`approved run ${runId} has no plan`);
    const plan = openPlan(context, runId, sealedPlan);
    const event = { type: "startApply" as const, at: unit.at, executorId: context.executorId };
    const applying = await advanceRun(context, unit, run, event, { sealedPlan: null });
    const until = await startLease(context, unit.tx, applying);
    unit.after(() => context.arm(EXECUTOR_LOST, until, { runId }));
    return { run: applying, specification, cause, desired: survey.desired, plan, planDigest };
  });
}

function approved(id: string) {
  return { where: { id, state: "APPROVED" as const }, include: { specification: true } };
}

async function endIfVoid(
  context: Context,
  unit: ServiceUnit,
  run: ProvisioningRun & { specification: Specification },
  survey: Survey,
): Promise<boolean> {
  const now = await transactionNow(unit.tx);
  if (run.expiresAt && run.expiresAt <= now) {
    await advanceRun(context, unit, run, { type: "expire", at: now });
    return true;
  }
  const { specification } = run;
  const reason = survey.found
    ? whyStale(run, specification, { ...survey, state: await readStateIdentity(unit.tx, specification) })
    : survey.reason;
  if (reason === undefined) return false;
  await advanceRun(context, unit, run, { type: "supersede", at: unit.at, reason });
  return true;
}
