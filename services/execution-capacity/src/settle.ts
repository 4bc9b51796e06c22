import type { Cause } from "@runtime-cloud/eventing/cause";
import { compiled } from "@runtime-cloud/state-machines/compiled";
import { workerPool } from "@runtime-cloud/state-machines/worker-pool";
import type { WorkerPool } from "../generated/prisma/client.ts";
import { type Capacity, keyOf } from "./capacity.ts";
import { endLease, isOpen } from "./capacity-lease.ts";
import { recordTransition } from "./recording.ts";
import { serveQueue } from "./serve-queue.ts";
import { writeCapacity } from "./write-capacity.ts";

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
    finishDrain(capacity, pool, cause);
    if (capacity.stirred) await serveQueue(capacity, pool, cause);
  }
  await writeCapacity(capacity);
}

function finishDrain(capacity: Capacity, pool: WorkerPool, cause: Cause): void {
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
}
