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
      SELECT 'pool' AS counter, pool.tenant_id, pool.id AS scope_id, pool.used AS counted, coalesce(leased.units, 0) AS held
      FROM worker_pool pool
      LEFT JOIN (
        SELECT pool_tenant_id, pool_id, sum(units)::int AS units FROM active GROUP BY pool_tenant_id, pool_id
      ) leased ON leased.pool_tenant_id = pool.tenant_id AND leased.pool_id = pool.id
      UNION ALL
      SELECT dimension.counter, scope.tenant_id, scope.project_id,
        CASE dimension.resource WHEN 'RUNS' THEN scope.used_runs ELSE scope.used_sandboxes END,
        coalesce(leased.units, 0)
      FROM scope_usage scope
      CROSS JOIN (VALUES ('runs', 'RUNS'), ('sandboxes', 'SANDBOXES')) AS dimension (counter, resource)
      LEFT JOIN (
        SELECT tenant_id, coalesce(project_id, '') AS project_id, resource::text, sum(units)::int AS units
        FROM active GROUP BY GROUPING SETS ((tenant_id, resource), (tenant_id, project_id, resource))
      ) leased ON leased.tenant_id = scope.tenant_id AND leased.project_id = scope.project_id
        AND leased.resource = dimension.resource
    )
    SELECT counter, tenant_id AS "tenantId", scope_id AS "scopeId", counted, held
    FROM counter WHERE counted <> held ORDER BY 1, 2, 3`;
}
