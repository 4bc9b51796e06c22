import type { Scope } from "./capacity.ts";
import type { Tx } from "../context.ts";

/** A tenant's scopes as they are now, by project; the tenant's own by the empty name. One never used holds nothing. */
export async function scopesOf(
  tx: Tx,
  tenantId: string,
  projectIds: readonly string[],
): Promise<ReadonlyMap<string, Scope>> {
  const names = ["", ...projectIds];
  const scope = { tenantId, projectId: { in: names } };
  const quotas = await tx.quota.findMany({ where: { ...scope, state: "ACTIVE" } });
  const usages = await tx.scopeUsage.findMany({ where: scope });
  return new Map(
    names.map((projectId) => {
      const nothing = { tenantId, projectId, usedRuns: 0, usedSandboxes: 0, executionSeconds: 0n, revision: 0n };
      const usage = usages.find((row) => row.projectId === projectId) ?? nothing;
      return [projectId, { usage, quota: quotas.find((row) => row.projectId === projectId) ?? null }];
    }),
  );
}
