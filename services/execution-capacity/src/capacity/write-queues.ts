import { Prisma } from "../../generated/prisma/client.ts";
import type { Capacity } from "./capacity.ts";

/** Puts back the queues: the places of waiters, and the flows and quotas that they moved. */
export async function writeQueues({ changes, scopes, query }: Capacity): Promise<void> {
  const { placed, left, flows, quotas } = changes;
  if (placed.length + left.length + flows.size + quotas.size === 0) return;
  const places = placed.flatMap(({ places: own, selector, ...waiter }) =>
    own.map((place) => ({ ...waiter, ...place, selecting: selector !== undefined })),
  );
  const selectors = placed.flatMap(({ tenantId, leaseId, selector }) =>
    selector ? [{ tenantId, leaseId, kind: selector.kind, labels: JSON.stringify(selector.labels) }] : [],
  );
  const moved = [...flows.values()];
  const exceeded = [...quotas].flatMap((key) => scopes.get(key)?.quota ?? []);

  await query(Prisma.sql`
    WITH placed AS (
      INSERT INTO queue_place (tenant_id, project_id, lease_id, priority, pool_tenant_id, pool_id, selecting)
      SELECT * FROM unnest(
        ${places.map((p) => p.tenantId)}::text[], ${places.map((p) => p.projectId)}::text[],
        ${places.map((p) => p.leaseId)}::uuid[], ${places.map((p) => p.priority)}::int[],
        ${places.map((p) => p.poolTenantId)}::text[], ${places.map((p) => p.poolId)}::text[],
        ${places.map((p) => p.selecting)}::bool[])
    ), selector AS (
      INSERT INTO waiter_selector (tenant_id, lease_id, kind, labels)
      SELECT tenant_id, lease_id, kind::"PoolKind", labels FROM unnest(
        ${selectors.map((s) => s.tenantId)}::text[], ${selectors.map((s) => s.leaseId)}::uuid[],
        ${selectors.map((s) => s.kind)}::text[], ${selectors.map((s) => s.labels)}::text[]::jsonb[]
      ) AS c (tenant_id, lease_id, kind, labels)
    ), gone AS (
      SELECT * FROM unnest(
        ${left.map((l) => l.tenantId)}::text[], ${left.map((l) => l.leaseId)}::uuid[]) AS c (tenant_id, lease_id)
    ), unplaced AS (
      DELETE FROM queue_place USING gone
      WHERE queue_place.tenant_id = gone.tenant_id AND queue_place.lease_id = gone.lease_id
    ), unselected AS (
      DELETE FROM waiter_selector USING gone
      WHERE waiter_selector.tenant_id = gone.tenant_id AND waiter_selector.lease_id = gone.lease_id
    ), flow AS (
      INSERT INTO fair_share (pool_tenant_id, pool_id, tenant_id, project_id, waiting, virtual_time, inner_time, contended)
      SELECT pool_tenant_id, pool_id, tenant_id, project_id, waiting, virtual_time, inner_time, contended FROM unnest(
        ${moved.map(({ flow }) => flow.poolTenantId)}::text[], ${moved.map(({ flow }) => flow.poolId)}::text[],
        ${moved.map(({ flow }) => flow.tenantId)}::text[], ${moved.map(({ flow }) => flow.projectId)}::text[],
        ${moved.map(({ waiting }) => waiting)}::int[],
        ${moved.map(({ flow, served }) => (served ? flow.virtualTime : 0))}::float8[],
        ${moved.map(({ flow, served }) => (served ? flow.innerTime : 0))}::float8[],
        ${moved.map(({ flow }) => flow.contended)}::bool[]
      ) AS c (pool_tenant_id, pool_id, tenant_id, project_id, waiting, virtual_time, inner_time, contended)
      ON CONFLICT (pool_tenant_id, pool_id, tenant_id, project_id) DO UPDATE SET
        waiting = fair_share.waiting + excluded.waiting,
        virtual_time = greatest(fair_share.virtual_time, excluded.virtual_time),
        inner_time = greatest(fair_share.inner_time, excluded.inner_time),
        contended = excluded.contended
    )
    UPDATE quota SET version = c.version
    FROM unnest(${exceeded.map((q) => q.id)}::uuid[], ${exceeded.map((q) => q.version)}::int[]) AS c (id, version)
    WHERE quota.id = c.id`);
}
