import type { CapacityLease, WaitReason } from "../generated/prisma/client.ts";
import type { ServiceUnit, Tx } from "./context.ts";
import { type Obstacle, obstacleTo } from "./obstacle.ts";
import { advanceQuota } from "./quota.ts";
import { scopesOf } from "./scopes.ts";

/** Why a holder waits at this moment, and its place in the pool's queue; 1 is next. */
export interface Standing {
  reason: WaitReason;
  position: number;
}

/** The reasons that QuotaExceeded announces: a waiter on record with one of them was announced. */
const announced: readonly (WaitReason | null)[] = ["TENANT_QUOTA", "PROJECT_QUOTA"];

/** Keeps why a holder waits, and announces once that a quota blocks it, however often it is found blocked. */
export async function recordObstacle(
  unit: ServiceUnit,
  { id, projectId, holderKind, holderId, waitReason }: CapacityLease,
  { reason, quota }: Obstacle,
): Promise<void> {
  if (announced.includes(waitReason) || (waitReason && !quota)) return;
  if (quota)
    await advanceQuota(unit, quota.row, { type: "exceed", projectId, holderKind, holderId, limit: quota.limit });
  await unit.tx.capacityLease.update({ where: { id }, data: { waitReason: reason } });
}

/** How the waiting ones among one tenant's leases stand, by lease. */
export async function standingsOf(tx: Tx, leases: readonly CapacityLease[]): Promise<Map<string, Standing>> {
  const waiting = leases.filter(({ state }) => state === "WAITING");
  const [first] = waiting;
  if (!first) return new Map();
  const keys = waiting.map(({ poolTenantId: tenantId, poolId: id }) => ({ tenantId, id }));
  const pools = await tx.workerPool.findMany({ where: { OR: keys } });
  const scopes = await scopesOf(
    tx,
    first.tenantId,
    waiting.map((lease) => lease.projectId),
  );
  const positions = await positionsOf(tx, waiting);
  return new Map(
    waiting.map((lease) => {
      const pool = pools.find(({ tenantId, id }) => tenantId === lease.poolTenantId && id === lease.poolId);
      // Nothing of its own in its way: others come first in a queue that is served in order.
      const reason = (pool && obstacleTo(lease, pool, scopes)?.reason) ?? "POOL_FULL";
      return [lease.id, { reason, position: positions.get(lease.id) ?? 0 }];
    }),
  );
}

async function positionsOf(tx: Tx, waiting: readonly CapacityLease[]): Promise<Map<string, number>> {
  const rows = await tx.$queryRaw<{ id: string; position: number }[]>`
    SELECT lease.id, (
      SELECT count(*)::int FROM capacity_lease ahead
      WHERE ahead.state = 'WAITING' AND ahead.pool_tenant_id = lease.pool_tenant_id AND ahead.pool_id = lease.pool_id
        AND (ahead.priority > lease.priority OR (ahead.priority = lease.priority AND ahead.arrival <= lease.arrival))
    ) AS position
    FROM capacity_lease lease WHERE lease.id = ANY(${waiting.map((lease) => lease.id)}::uuid[])`;
  return new Map(rows.map(({ id, position }) => [id, position]));
}
