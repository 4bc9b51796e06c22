import type { Tx } from "./context.ts";
import type { Scopes } from "./obstacle.ts";

/** The quotas and the use that bear on leases of a tenant's projects: the tenant's own and the projects'. */
export async function scopesOf(tx: Tx, tenantId: string, projectIds: readonly string[]): Promise<Scopes> {
  const scope = { tenantId, projectId: { in: ["", ...projectIds] } };
  const quotas = await tx.quota.findMany({ where: { ...scope, state: "ACTIVE" } });
  const usages = await tx.scopeUsage.findMany({ where: scope });
  return { quotas, usages };
}
