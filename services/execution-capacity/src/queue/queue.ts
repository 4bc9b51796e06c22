import type { CapacityLease, FairShare, WorkerPool } from "../../generated/prisma/client.ts";
import { type Capacity, flowIn, keyOf, leaseKey, lockedPool, poolKey } from "../capacity/capacity.ts";
import type { Place } from "../capacity/capacity-rows.ts";
import type { PoolSelector } from "../desk/lease-operation.ts";

/** Gives a waiting lease its place in the queue of each pool that may grant it. */
export function enterQueues(
  capacity: Capacity,
  lease: CapacityLease,
  pools: readonly WorkerPool[],
  selector: PoolSelector | undefined,
): void {
  const { changes } = capacity;
  const selecting = selector !== undefined;
  const places = pools.map(({ tenantId, id }) => ({ poolTenantId: tenantId, poolId: id, selecting }));
  const { tenantId, projectId, priority, id: leaseId } = lease;
  changes.placed.push({ tenantId, projectId, leaseId, priority, places, selector });
  capacity.places.set(leaseKey(lease), places);
  for (const place of places) join(capacity, lease, place);
}

function join(capacity: Capacity, { tenantId, projectId }: CapacityLease, place: Place): void {
  const pool = lockedPool(capacity, place);
  count(capacity, place, 1);
  const tenant = flowIn(capacity, place, tenantId, "");
  const project = flowIn(capacity, place, tenantId, projectId);
  // Whoever comes back takes up where its pool is: what it didn't ask for meanwhile isn't owed to it.
  if (tenant.waiting === 0) tenant.virtualTime = Math.max(tenant.virtualTime, pool.virtualTime);
  if (project.waiting === 0) project.virtualTime = Math.max(project.virtualTime, tenant.innerTime);
  wait(capacity, tenant, 1, true);
  wait(capacity, project, 1, true);
  // Whoever remembers the tenant as one that waits nowhere finds that out by its revision.
  capacity.changes.scopes.add(keyOf(tenantId, ""));
}

/** Takes a lease out of every queue, because it is granted or gives up. */
export function leaveQueues(capacity: Capacity, lease: CapacityLease): void {
  const { tenantId, projectId, id: leaseId } = lease;
  const places = capacity.places.get(leaseKey(lease)) ?? [];
  capacity.changes.left.push({ tenantId, leaseId });
  capacity.places.delete(leaseKey(lease));
  for (const place of places) {
    if (places.length > 1) capacity.restless.add(poolKey(place));
    count(capacity, place, -1);
    wait(capacity, flowIn(capacity, place, tenantId, ""), -1, false);
    wait(capacity, flowIn(capacity, place, tenantId, projectId), -1, false);
  }
}

function count(capacity: Capacity, place: Place, by: number): void {
  const pool = lockedPool(capacity, place);
  pool.waiting += by;
  if (place.selecting) pool.selecting += by;
  capacity.stirred = true;
  capacity.changes.pools.add(poolKey(place));
}

/**
 * Serves one waiter of a flow, by start-time fair queueing: what it gets is charged to its flows, by their weights, from
 * where they stand, and never from before the last that was served.
 */
export function chargeFlows(
  capacity: Capacity,
  pool: WorkerPool,
  { tenant, project, units }: { tenant: Weighted; project: Weighted; units: number },
): void {
  pool.virtualTime = Math.max(tenant.flow.virtualTime, pool.virtualTime);
  tenant.flow.innerTime = Math.max(project.flow.virtualTime, tenant.flow.innerTime);
  tenant.flow.virtualTime = pool.virtualTime + units / tenant.weight;
  project.flow.virtualTime = tenant.flow.innerTime + units / project.weight;
  wait(capacity, tenant.flow, 0, true);
  wait(capacity, project.flow, 0, true);
  capacity.changes.pools.add(keyOf(pool.tenantId, pool.id));
}

/** Whether newcomers of a tenant queue behind its first waiter, because its quota leaves too little for that one. */
export function contendFlow(capacity: Capacity, flow: FairShare, contended: boolean): void {
  if (flow.contended === contended) return;
  flow.contended = contended;
  wait(capacity, flow, 0, false);
}

export interface Weighted {
  flow: FairShare;
  weight: number;
}

function wait({ changes }: Capacity, flow: FairShare, by: number, served: boolean): void {
  flow.waiting += by;
  const key = keyOf(flow.poolTenantId, flow.poolId, flow.tenantId, flow.projectId);
  const known = changes.flows.get(key);
  changes.flows.set(key, { flow, waiting: (known?.waiting ?? 0) + by, served: served || (known?.served ?? false) });
}
