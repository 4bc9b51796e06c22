import { create, type MessageShape } from "@bufbuild/protobuf";
import { ScopeUsageSchema } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/usage_pb";
import type { Tx } from "../context.ts";
import { scopesOf } from "../capacity/scopes.ts";

export type ScopeUsageMessage = MessageShape<typeof ScopeUsageSchema>;

/** The id that stands for a tenant as a whole where projects are named. */
export const WHOLE_TENANT = "";

/**
 * What a tenant and some of its projects hold and wait for, in the order asked. A project that never held or waited for
 * anything uses nothing.
 */
export async function scopeUsages(
  tx: Tx,
  tenantId: string,
  projectIds: readonly string[],
): Promise<ScopeUsageMessage[]> {
  const scopes = await scopesOf(tx, tenantId, projectIds);
  const waiting = await waitingIn(tx, tenantId, projectIds);
  return projectIds.map((projectId) => {
    const { quota, usage } = scopes.get(projectId) ?? {};
    return create(ScopeUsageSchema, {
      projectId,
      runs: { used: usage?.usedRuns ?? 0, ...(quota && { limit: quota.concurrentRuns }) },
      sandboxes: { used: usage?.usedSandboxes ?? 0, ...(quota && { limit: quota.concurrentSandboxes }) },
      weight: quota?.weight ?? 1,
      waiting: waiting.get(projectId) ?? 0,
      executionSeconds: usage?.executionSeconds ?? 0n,
    });
  });
}

/** Leases that wait, by project and for the whole tenant. One that waits in several pools is one. */
async function waitingIn(tx: Tx, tenantId: string, projectIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx.$queryRaw<{ projectId: string; waiting: number }[]>`
    SELECT coalesce(project_id, ${WHOLE_TENANT}) AS "projectId", count(DISTINCT lease_id)::int AS waiting
    FROM queue_place WHERE tenant_id = ${tenantId}
    GROUP BY GROUPING SETS ((), (project_id))
    HAVING grouping(project_id) = 1 OR project_id = ANY(${projectIds})`;
  return new Map(rows.map(({ projectId, waiting }) => [projectId, waiting]));
}
