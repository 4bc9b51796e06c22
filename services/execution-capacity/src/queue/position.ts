import type { CapacityLease } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

/**
 * The places of waiters in their pools' fair queues, by lease: how many would be served up to them if all asked for one
 * slot and nobody else came. Worked out from the virtual times of the flows, not by playing the queue through; limits that
 * hold others back are left out.
 */
export async function positionsOf(
  tx: Tx,
  waiting: readonly Pick<CapacityLease, "tenantId" | "id">[],
): Promise<Map<string, number>> {
  const rows = await tx.$queryRaw<{ id: string; position: number }[]>`
    WITH mine AS (
      SELECT DISTINCT ON (place.lease_id) place.*
      FROM unnest(${waiting.map((lease) => lease.tenantId)}::text[], ${waiting.map((lease) => lease.id)}::uuid[])
        AS wanted (tenant_id, id)
      JOIN queue_place place ON place.tenant_id = wanted.tenant_id AND place.lease_id = wanted.id
      JOIN capacity_lease lease ON lease.tenant_id = wanted.tenant_id AND lease.id = wanted.id
      ORDER BY place.lease_id, (place.pool_tenant_id, place.pool_id) = (lease.pool_tenant_id, lease.pool_id) DESC
    ), flow AS (
      SELECT flow.*, coalesce(quota.weight, 1) AS weight
      FROM (SELECT DISTINCT pool_tenant_id, pool_id FROM mine) pool
      JOIN fair_share flow USING (pool_tenant_id, pool_id)
      LEFT JOIN quota ON quota.tenant_id = flow.tenant_id AND quota.project_id = flow.project_id
        AND quota.state = 'ACTIVE'
      WHERE flow.waiting > 0
    ), in_project AS (
      SELECT mine.*, (
        SELECT count(*) FROM queue_place ahead
        WHERE ahead.pool_tenant_id = mine.pool_tenant_id AND ahead.pool_id = mine.pool_id
          AND ahead.tenant_id = mine.tenant_id AND ahead.project_id = mine.project_id
          AND (ahead.priority > mine.priority OR (ahead.priority = mine.priority AND ahead.arrival < mine.arrival))
      ) AS ahead FROM mine
    ), in_tenant AS (
      SELECT mine.*, mine.ahead + (
        SELECT coalesce(sum(least(other.waiting, greatest(0, ceil((own.virtual_time + mine.ahead / own.weight
          - other.virtual_time) * other.weight)))), 0)
        FROM flow other
        WHERE other.pool_tenant_id = mine.pool_tenant_id AND other.pool_id = mine.pool_id
          AND other.tenant_id = mine.tenant_id AND other.project_id NOT IN ('', mine.project_id)
      ) AS behind
      FROM in_project mine
      JOIN flow own ON own.pool_tenant_id = mine.pool_tenant_id AND own.pool_id = mine.pool_id
        AND own.tenant_id = mine.tenant_id AND own.project_id = mine.project_id
    )
    SELECT mine.lease_id AS id, (1 + mine.behind + (
      SELECT coalesce(sum(least(other.waiting, greatest(0, ceil((own.virtual_time + mine.behind / own.weight
        - other.virtual_time) * other.weight)))), 0)
      FROM flow other
      WHERE other.pool_tenant_id = mine.pool_tenant_id AND other.pool_id = mine.pool_id
        AND other.tenant_id <> mine.tenant_id AND other.project_id = ''
    ))::int AS position
    FROM in_tenant mine
    JOIN flow own ON own.pool_tenant_id = mine.pool_tenant_id AND own.pool_id = mine.pool_id
      AND own.tenant_id = mine.tenant_id AND own.project_id = ''`;
  return new Map(rows.map(({ id, position }) => [id, position]));
}
