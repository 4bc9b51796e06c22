import type { WorkerPool } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

/**
 * Brings the queue of a pool that is new, or was described anew, in line with what waiters select: those whose selector
 * finds it get a place, and lose it where it no longer does. Under the locks of all pools that waiters select from.
 */
export async function joinPool(tx: Tx, pool: WorkerPool): Promise<void> {
  const { tenantId, id, kind, shared } = pool;
  await tx.$executeRaw`
    WITH label AS (
      SELECT coalesce(jsonb_object_agg(name, value), '{}') AS labels
      FROM pool_label WHERE tenant_id = ${tenantId} AND pool_id = ${id}
    ), wanted AS (
      SELECT lease.tenant_id, lease.project_id, lease.id, lease.priority
      FROM label, waiter_selector selector
      JOIN capacity_lease lease ON lease.tenant_id = selector.tenant_id AND lease.id = selector.lease_id
      WHERE selector.kind = ${kind}::text::"PoolKind" AND label.labels @> selector.labels AND lease.state = 'WAITING'
        AND (${shared} OR lease.tenant_id = ${tenantId})
    ), lost AS (
      DELETE FROM queue_place place
      WHERE place.pool_tenant_id = ${tenantId} AND place.pool_id = ${id} AND place.selecting
        AND NOT EXISTS (SELECT FROM wanted WHERE wanted.tenant_id = place.tenant_id AND wanted.id = place.lease_id)
    )
    INSERT INTO queue_place (pool_tenant_id, pool_id, tenant_id, project_id, priority, lease_id, selecting)
    SELECT ${tenantId}, ${id}, tenant_id, project_id, priority, id, true FROM wanted ORDER BY id
    ON CONFLICT DO NOTHING`;
  await recount(tx, pool);
}

/** Empties the queue of a pool that is gone: whoever has no place elsewhere has waited long enough. */
export async function leavePool(tx: Tx, pool: WorkerPool): Promise<void> {
  const { tenantId, id } = pool;
  await tx.$executeRaw`
    DELETE FROM queue_place place
    WHERE place.pool_tenant_id = ${tenantId} AND place.pool_id = ${id} AND EXISTS (
      SELECT FROM queue_place other WHERE other.tenant_id = place.tenant_id AND other.lease_id = place.lease_id
        AND (other.pool_tenant_id, other.pool_id) <> (place.pool_tenant_id, place.pool_id))`;
  await tx.$executeRaw`
    UPDATE capacity_lease lease SET wait_deadline = clock_timestamp(), due_at = clock_timestamp()
    FROM queue_place place
    WHERE place.pool_tenant_id = ${tenantId} AND place.pool_id = ${id}
      AND lease.tenant_id = place.tenant_id AND lease.id = place.lease_id AND lease.state = 'WAITING'`;
  await recount(tx, pool);
}

/** Counts a pool's waiters anew; a flow that comes in begins where the pool is. */
async function recount(tx: Tx, { tenantId, id }: WorkerPool): Promise<void> {
  await tx.$executeRaw`
    WITH waiting AS (
      SELECT tenant_id, project_id, count(*)::int AS waiting FROM queue_place
      WHERE pool_tenant_id = ${tenantId} AND pool_id = ${id} GROUP BY GROUPING SETS ((tenant_id), (tenant_id, project_id))
    ), flow AS (
      SELECT pool.tenant_id AS pool_tenant_id, pool.id AS pool_id, waiting.tenant_id,
        coalesce(waiting.project_id, '') AS project_id, waiting.waiting, pool.virtual_time
      FROM worker_pool pool CROSS JOIN waiting
      WHERE pool.tenant_id = ${tenantId} AND pool.id = ${id}
    ), emptied AS (
      UPDATE fair_share SET waiting = 0
      WHERE pool_tenant_id = ${tenantId} AND pool_id = ${id} AND waiting > 0
        AND (tenant_id, project_id) NOT IN (SELECT tenant_id, project_id FROM flow)
    )
    INSERT INTO fair_share (pool_tenant_id, pool_id, tenant_id, project_id, waiting, virtual_time)
    SELECT pool_tenant_id, pool_id, tenant_id, project_id, waiting,
      CASE project_id WHEN '' THEN virtual_time ELSE 0 END FROM flow
    ON CONFLICT (pool_tenant_id, pool_id, tenant_id, project_id) DO UPDATE SET
      waiting = excluded.waiting,
      virtual_time = CASE fair_share.waiting WHEN 0 THEN greatest(fair_share.virtual_time, excluded.virtual_time)
        ELSE fair_share.virtual_time END`;
  await tx.$executeRaw`
    UPDATE worker_pool SET
      waiting = (SELECT count(*) FROM queue_place WHERE pool_tenant_id = ${tenantId} AND pool_id = ${id}),
      selecting = (SELECT count(*) FROM queue_place WHERE pool_tenant_id = ${tenantId} AND pool_id = ${id} AND selecting)
    WHERE tenant_id = ${tenantId} AND id = ${id}`;
}
