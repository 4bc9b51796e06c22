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
      SELECT lease.*, pool.kind FROM capacity_lease lease
      JOIN worker_pool pool ON pool.tenant_id = lease.pool_tenant_id AND pool.id = lease.pool_id
      WHERE lease.state = 'ACTIVE'
    ), counter AS (
      SELECT 'pool' AS counter, pool.tenant_id, pool.id AS scope_id, pool.used AS counted,
        (SELECT coalesce(sum(units), 0)::int FROM active
         WHERE active.pool_tenant_id = pool.tenant_id AND active.pool_id = pool.id) AS held
      FROM worker_pool pool
      UNION ALL
      SELECT dimension.counter, scope.tenant_id, scope.project_id,
        CASE dimension.kind WHEN 'RUN_WORKERS' THEN scope.used_runs ELSE scope.used_sandboxes END,
        (SELECT coalesce(sum(units), 0)::int FROM active
         WHERE active.tenant_id = scope.tenant_id AND scope.project_id IN ('', active.project_id)
           AND active.kind::text = dimension.kind)
      FROM scope_usage scope
      CROSS JOIN (VALUES ('runs', 'RUN_WORKERS'), ('sandboxes', 'SANDBOX_HOSTS')) AS dimension (counter, kind)
    )
    SELECT counter, tenant_id AS "tenantId", scope_id AS "scopeId", counted, held
    FROM counter WHERE counted <> held ORDER BY 1, 2, 3`;
}
