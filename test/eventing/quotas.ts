import type { Cause } from "@runtime-cloud/eventing/cause";
import { commit } from "@runtime-cloud/eventing/commit";
import { accept, begin } from "@runtime-cloud/eventing/decision";
import type { Unit } from "@runtime-cloud/eventing/unit-of-work";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { quota } from "@runtime-cloud/state-machines/quota";
import type { ServiceDatabase, Tx } from "./service-database.ts";

export const cause: Cause = { actor: "operator-1", correlationId: "request-1" };

/** Sets a tenant's quota for the first time, by the same path as the service's RPC. Announces QuotaChanged. */
export function setNewQuota({ context }: ServiceDatabase, tenantId: string, concurrentRuns = 1) {
  return unitOfWork(context, cause, (unit) => createQuota(unit, tenantId, concurrentRuns));
}

export function createQuota(unit: Unit<Tx>, tenantId: string, concurrentRuns = 1) {
  const row = { id: unit.newId(), tenantId, projectId: "", concurrentRuns, concurrentSandboxes: 1, weight: 1 };
  return commit(unit, begin(quota, row), ({ state }) => unit.tx.quota.create({ data: { ...row, state } }));
}

/** Raises a quota by one run: read, decide, write. */
export async function raiseQuota(unit: Unit<Tx>, id: string) {
  const row = await unit.tx.quota.findUniqueOrThrow({ where: { id } });
  const { version, concurrentRuns, concurrentSandboxes, weight } = row;
  const raised = accept(quota, row, { type: "set", concurrentRuns: concurrentRuns + 1, concurrentSandboxes, weight });
  return commit(unit, raised, (columns) =>
    unit.tx.quota.update({ where: { id, version }, data: { ...columns, version: { increment: 1 } } }),
  );
}
