import type { ReconciliationDecided } from "@runtime-cloud/contracts/runtimecloud/events/v1/inventory_pb";
import { ProposalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import type { Context, ServiceUnit } from "../context.ts";
import { planRun } from "./plan-run.ts";

/**
 * ReconciliationDecided: an accepted proposal has its run already, planned by whoever decided. Should it be missing, it
 * is planned here under the same proposal, where it is plain what to plan.
 */
export async function confirmReconciliation(
  context: Context,
  unit: ServiceUnit,
  decided: ReconciliationDecided,
): Promise<void> {
  const { state, proposalId, tenantId, environmentId } = decided;
  if (state !== ProposalState.ACCEPTED) return;
  const planned = await unit.tx.provisioningRun.count({ where: { tenantId, proposalId } });
  if (planned > 0) return;

  const inForce = await unit.tx.specification.findMany({ where: { tenantId, environmentId, state: "APPLIED" } });
  const [specification] = inForce;
  if (!specification || inForce.length > 1) {
    throw new NotFound(
      `proposal ${proposalId} has no run, and environment ${environmentId} has ${inForce.length} applied specifications: ` +
        "plan the one that is meant, naming the proposal",
    );
  }
  const requestedBy = unit.cause.actor;
  await planRun(context, unit, { specification, kind: "RECONCILIATION", mode: "APPLY", requestedBy, proposalId });
}
