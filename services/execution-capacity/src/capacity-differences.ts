import type { SqlTransaction } from "@runtime-cloud/eventing/sql-transaction";

/** A counter that isn't the sum of the active leases which it stands for. */
export interface CapacityDifference {
  /** `pool`, `runs` or `sandboxes`: the two of them of a tenant or of a project. */
  counter: string;
  tenantId: string;
  /** The pool, or the project; empty for a whole tenant. */
  scopeId: string;
  counted: number;
  /** Units of the active leases. */
  held: number;
}

/** Counters beside what is really leased. Always empty: a lease and its counters change in one transaction. */
export function capacityDifferences(tx: SqlTransaction): Promise<CapacityDifference[]> {
  return tx.$queryRaw<CapacityDifference[]>`
    WITH active AS (
      SELECT * FROM capacity_lease WHERE state = 'ACTIVE'
    ), counter AS (
      SELECT 'pool' AS counter, pool.tenant_id, pool.id AS scope_id, pool.used AS counted,
        (SELECT coalesce(sum(units), 0)::int FROM active
         WHERE active.pool_tenant_id = pool.tenant_id AND active.pool_id = pool.id) AS held
      FROM worker_pool pool
      UNION ALL
      SELECT dimension.counter, scope.tenant_id, scope.project_id,
        CASE dimension.resource WHEN 'RUNS' THEN scope.used_runs ELSE scope.used_sandboxes END,
        (SELECT coalesce(sum(units), 0)::int FROM active
         WHERE active.tenant_id = scope.tenant_id AND scope.project_id IN ('', active.project_id)
           AND active.resource::text = dimension.resource)
      FROM scope_usage scope
      CROSS JOIN (VALUES ('runs', 'RUNS'), ('sandboxes', 'SANDBOXES')) AS dimension (counter, resource)
    )
    SELECT counter, tenant_id AS "tenantId", scope_id AS "scopeId", counted, held
    FROM counter WHERE counted <> held ORDER BY 1, 2, 3`;
}
