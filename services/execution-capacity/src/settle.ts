import type { CapacityLease, WorkerPool } from "../generated/prisma/client.ts";
import { endLease, grant } from "./capacity-lease.ts";
import type { Capacity, PoolKey } from "./capacity-lock.ts";
import { obstacleTo } from "./obstacle.ts";
import { scopesOf } from "./scopes.ts";
import { recordObstacle } from "./waiting.ts";
import { advancePool, findPool } from "./worker-pool.ts";

/** How many overdue leases one transaction ends; the rest is left to the next one. */
export const OVERDUE_BATCH = 200;

/**
 * The last step of every change of capacity, in its transaction: ends what is overdue in the claimed pools, finishes
 * drains, and grants to the waiters whatever is free. Gives the ids of the leases that it ended.
 */
export async function settle(capacity: Capacity): Promise<string[]> {
  const ended: string[] = [];
  for (const pool of capacity.claimed) ended.push(...(await endOverdue(capacity, pool)));
  for (const pool of capacity.pools) {
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
    take: OVERDUE_BATCH,
  });
  for (const lease of overdue) await endLease(capacity, lease, { type: "expire", at: now });
  return overdue.map((lease) => lease.id);
}

async function finishDrain({ unit }: Capacity, key: PoolKey): Promise<void> {
  const pool = await findPool(unit.tx, key);
  if (pool?.state === "DRAINING" && pool.used === 0) await advancePool(unit, pool, { type: "empty" });
}

/**
 * Serves a pool's queue by priority, then arrival. A tenant or project that its own quota blocks is passed over whole; a
 * waiter for whom the pool is too full is not, so that small requests never starve a large one.
 */
async function grantWaiters(capacity: Capacity, key: PoolKey): Promise<void> {
  const { tx } = capacity.unit;
  const passedOver: PassedOver = { tenants: [], projects: [] };
  for (;;) {
    const pool = await findPool(tx, key);
    const waiter = pool && (await nextWaiter(capacity, pool, passedOver));
    if (!waiter) return;
    const { tenantId, projectId } = waiter;
    const obstacle = obstacleTo(waiter, pool, await scopesOf(tx, tenantId, [projectId]));
    if (!obstacle) {
      await grant(capacity, waiter);
      continue;
    }
    await recordObstacle(capacity.unit, waiter, obstacle);
    if (obstacle.reason === "PROJECT_QUOTA") passedOver.projects.push({ tenantId, projectId });
    else if (obstacle.reason === "POOL_FULL") return;
    else passedOver.tenants.push(tenantId);
  }
}

interface PassedOver {
  tenants: string[];
  projects: { tenantId: string; projectId: string }[];
}

/** The first of the queue, if the pool grants anything now. */
function nextWaiter(
  { unit, now }: Capacity,
  pool: WorkerPool,
  { tenants, projects }: PassedOver,
): Promise<CapacityLease | null> | null {
  if (pool.state !== "ACTIVE") return null;
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
