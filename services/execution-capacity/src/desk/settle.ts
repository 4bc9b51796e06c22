import type { Cause } from "@runtime-cloud/eventing/cause";
import { compiled } from "@runtime-cloud/state-machines/compiled";
import { workerPool } from "@runtime-cloud/state-machines/worker-pool";
import { Prisma, type WorkerPool } from "../../generated/prisma/client.ts";
import { type Capacity, keyOf } from "../capacity/capacity.ts";
import { endLease, isOpen } from "../capacity/capacity-lease.ts";
import { recordTransition } from "../capacity/recording.ts";
import { serveQueue } from "../queue/serve-queue.ts";
import { writeCapacity } from "../capacity/write-capacity.ts";

const decidePool = compiled(workerPool);

/** Ends the leases whose time was over when the locks were taken. */
export function endOverdue(capacity: Capacity, cause: Cause): void {
  for (const key of capacity.overdue) {
    const lease = capacity.leases.get(key);
    if (lease && isOpen(lease)) endLease(capacity, lease, { type: "expire", at: capacity.now }, cause);
  }
}

/**
 * The last step of every change of capacity, in its transaction: finishes drains, grants to the waiters whatever is free,
 * and writes it all.
 */
export async function settle(capacity: Capacity, cause: Cause): Promise<void> {
  for (const pool of capacity.pools.values()) {
    await finishDrain(capacity, pool, cause);
    if (capacity.stirred) await serveQueue(capacity, pool, cause);
  }
  do {
    for (const key of capacity.restless) {
      capacity.restless.delete(key);
      const pool = capacity.pools.get(key);
      if (pool) await serveQueue(capacity, pool, cause);
    }
    stirThoseBehind(capacity);
  } while (capacity.restless.size > 0);
  await writeCapacity(capacity);
}

/**
 * Who waits for more slots than a pool has free holds up all behind, until a quota blocks it too: which may come of what
 * its tenant was granted in another pool.
 */
function stirThoseBehind({ pools, granting, restless }: Capacity): void {
  const granted = [...granting];
  granting.clear();
  for (const [key, pool] of pools) {
    const holdsUp = pool.contended && pool.used < pool.currentSize;
    if (holdsUp && granted.some((other) => other !== key)) restless.add(key);
  }
}

/** Nobody waits for a drained pool: its waiters' patience is over. */
async function finishDrain(capacity: Capacity, pool: WorkerPool, cause: Cause): Promise<void> {
  if (pool.state !== "DRAINING" || pool.used > 0) return;
  const { state: from, tenantId, id } = pool;
  const decision = decidePool(pool, { type: "empty" });
  if (!decision.accepted) return;
  const { state, emitted } = decision;
  pool.state = state;
  pool.version += 1;
  capacity.changes.pools.add(keyOf(tenantId, id));
  recordTransition(
    capacity,
    { aggregate: workerPool.id, row: pool, version: pool.version, from, event: "empty", to: state, emitted },
    cause,
  );
  if (pool.waiting === 0) return;
  await capacity.query(Prisma.sql`
    UPDATE capacity_lease lease SET wait_deadline = ${capacity.now}, due_at = ${capacity.now}
    FROM queue_place place
    WHERE place.pool_tenant_id = ${tenantId} AND place.pool_id = ${id} AND NOT place.selecting
      AND lease.tenant_id = place.tenant_id AND lease.id = place.lease_id AND lease.state = 'WAITING'`);
}
