import type { CapacityLease, WorkerPool } from "../generated/prisma/client.ts";
import { endLease, grant } from "./capacity-lease.ts";
import type { Capacity, PoolKey } from "./capacity-lock.ts";
import { obstacleTo } from "./obstacle.ts";
import { scopesOf } from "./scopes.ts";
import { recordObstacle } from "./waiting.ts";
import { advancePool, findPool } from "./worker-pool.ts";

/** How many leases one transaction ends, so that it is short whatever ended at once; the rest is left to the next one. */
export const END_BATCH = 50;

/**
 * The last step of every change of capacity, in its transaction: ends what is overdue in the claimed pools, finishes
 * drains, and grants to the waiters whatever is free. Gives the ids of the leases that it ended.
 */
export async function settle(capacity: Capacity): Promise<string[]> {
  const ended: string[] = [];
  for (const pool of capacity.claimed) ended.push(...(await endOverdue(capacity, pool)));
  for (const key of capacity.pools) {
    const pool = await findPool(capacity.unit.tx, key);
    if (!pool) continue;
    await finishDrain(capacity, pool);
    await grantWaiters(capacity, pool);
  }
  return ended;
}

async function endOverdue(capacity: Capacity, { tenantId, id }: PoolKey): Promise<string[]> {
  const { unit, now, tenants } = capacity;
  const overdue = await unit.tx.capacityLease.findMany({
    where: {
      poolTenantId: tenantId,
      poolId: id,
      tenantId: { in: [...tenants] },
      OR: [
        { state: "ACTIVE", expiresAt: { lte: now } },
        { state: "WAITING", waitDeadline: { lte: now } },
      ],
    },
    orderBy: [{ expiresAt: "asc" }, { waitDeadline: "asc" }],
    take: END_BATCH,
  });
  for (const lease of overdue) await endLease(capacity, lease, { type: "expire", at: now });
  return overdue.map((lease) => lease.id);
}

async function finishDrain({ unit }: Capacity, pool: WorkerPool): Promise<void> {
  if (pool.state === "DRAINING" && pool.used === 0) await advancePool(unit, pool, { type: "empty" });
}

/**
 * Serves a pool's queue by priority, then arrival. A tenant or project that its own quota blocks is passed over whole; a
 * waiter for whom the pool is too full is not, so that small requests never starve a large one.
 */
async function grantWaiters(capacity: Capacity, found: WorkerPool): Promise<void> {
  const passedOver: PassedOver = { tenants: [], projects: [] };
  for (let pool = found; pool.state === "ACTIVE" && pool.used < pool.currentSize;) {
    const waiter = await nextWaiter(capacity, pool, passedOver);
    if (!waiter) return;
    const { tenantId, projectId } = waiter;
    const obstacle = obstacleTo(waiter, pool, await scopesOf(capacity.unit.tx, tenantId, [projectId]));
    if (!obstacle) {
      pool = await grant(capacity, waiter);
      continue;
    }
    await recordObstacle(capacity.unit, waiter, obstacle);
    if (obstacle.reason === "POOL_FULL") return;
    if (obstacle.reason === "PROJECT_QUOTA") passedOver.projects.push({ tenantId, projectId });
    else passedOver.tenants.push(tenantId);
  }
}

interface PassedOver {
  tenants: string[];
  projects: { tenantId: string; projectId: string }[];
}

/** The first of the queue but for those passed over. */
function nextWaiter(
  { unit, now }: Capacity,
  pool: WorkerPool,
  { tenants, projects }: PassedOver,
): Promise<CapacityLease | null> {
  return unit.tx.capacityLease.findFirst({
    where: {
      poolTenantId: pool.tenantId,
      poolId: pool.id,
      state: "WAITING",
      OR: [{ waitDeadline: null }, { waitDeadline: { gt: now } }],
      NOT: [{ tenantId: { in: tenants } }, ...projects],
    },
    orderBy: [{ priority: "desc" }, { arrival: "asc" }],
  });
}
