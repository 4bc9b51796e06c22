import { commit } from "@runtime-cloud/eventing/commit";
import { accept } from "@runtime-cloud/eventing/decision";
import { provisioningRun } from "@runtime-cloud/state-machines/provisioning-run";
import type { RunEvent } from "@runtime-cloud/state-machines/provisioning-run-columns";
import type { Prisma } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { PLAN_EXPIRY } from "../deadline-kinds.ts";
import { enqueueReady, enqueueRun } from "./run-queue.ts";
import { type Run, unsealed } from "./run-row.ts";

/** Columns beside the machine's own that are written with a transition. */
export type RunExtras = Pick<
  Prisma.ProvisioningRunUncheckedUpdateInput,
  | "stateLineage"
  | "stateSerial"
  | "sealedPlan"
  | "outputs"
  | "sealedOutputs"
  | "sensitiveOutputs"
  | "executorUntil"
  | "forceRequested"
>;

/** Sends a run's machine an event, writes what comes of it and wakes whoever acts next. Throws IllegalTransition. */
export async function advanceRun(
  context: Context,
  unit: ServiceUnit,
  run: Run,
  event: RunEvent,
  extras: RunExtras = {},
): Promise<Run> {
  const { id, version } = run;
  const next = await commit(unit, accept(provisioningRun, run, event), (columns) =>
    unit.tx.provisioningRun.update({
      where: { id, version },
      data: { ...columns, ...extras, ...withoutUse(columns), version: { increment: 1 } },
      omit: unsealed,
    }),
  );
  // Whatever still works on a run that is over no longer reaches the engine's state.
  if (next.endedAt) await unit.tx.engineStateCredential.deleteMany({ where: { holderId: id } });
  unit.after(() => wake(context, next, event));
  return next;
}

/** Secrets without a use: the plan of a run that is over, and the state that one salvaged whose end is settled. */
function withoutUse({ endedAt, state }: { endedAt?: Date | null; state: Run["state"] }): Secrets {
  if (!endedAt) return {};
  return state === "INDETERMINATE" ? { sealedPlan: null } : { sealedPlan: null, sealedSalvage: null };
}

type Secrets = Pick<Prisma.ProvisioningRunUncheckedUpdateInput, "sealedPlan" | "sealedSalvage">;

async function wake(context: Context, run: Run, event: RunEvent): Promise<void> {
  if (run.state === "AWAITING_APPROVAL" || run.state === "APPROVED") {
    if (run.expiresAt) await context.arm(PLAN_EXPIRY, run.expiresAt, { runId: run.id });
    if (event.type === "approve") await enqueueRun(context, run);
  }
  if (run.state === "QUEUED" || run.endedAt) await enqueueReady(context, run.environmentId);
}
