import { commit } from "@runtime-cloud/eventing/commit";
import { accept } from "@runtime-cloud/eventing/decision";
import { provisioningRun } from "@runtime-cloud/state-machines/provisioning-run";
import type { RunEvent } from "@runtime-cloud/state-machines/provisioning-run-columns";
import type { Prisma } from "../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "./context.ts";
import { PLAN_EXPIRY } from "./deadline-kinds.ts";
import { enqueueReady, enqueueRun } from "./run-queue.ts";
import { type Run, unsealed } from "./run-row.ts";

/** Columns beside the machine's own that are written with a transition. */
export type RunExtras = Pick<
  Prisma.ProvisioningRunUncheckedUpdateInput,
  "stateLineage" | "stateSerial" | "sealedPlan" | "outputs" | "sealedOutputs" | "executorUntil" | "forceRequested"
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
      // A plan that can no longer be applied is a secret without a use.
      data: { ...columns, ...extras, ...(columns.endedAt && { sealedPlan: null }), version: { increment: 1 } },
      omit: unsealed,
    }),
  );
  unit.after(() => wake(context, next, event));
  return next;
}

async function wake(context: Context, run: Run, event: RunEvent): Promise<void> {
  if (run.state === "AWAITING_APPROVAL" || run.state === "APPROVED") {
    if (run.expiresAt) await context.arm(PLAN_EXPIRY, run.expiresAt, { runId: run.id });
    if (event.type === "approve") await enqueueRun(context, run.id);
  }
  if (run.state === "QUEUED" || run.endedAt) await enqueueReady(context, run.environmentId);
}
