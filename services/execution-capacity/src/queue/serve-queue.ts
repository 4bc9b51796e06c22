import type { Cause } from "@runtime-cloud/eventing/cause";
import type { WorkerPool } from "../../generated/prisma/client.ts";
import { type Capacity, keyOf } from "../capacity/capacity.ts";
import { endLease, grant, isOverdue } from "../capacity/capacity-lease.ts";
import { announceObstacle } from "../desk/exceeded.ts";
import { isBeyond, obstacleTo } from "../desk/obstacle.ts";
import { chargeFlows, contendFlow, leaveQueues } from "./queue.ts";
import { type QueuedProject, type QueuedTenant, readQueue } from "./read-queue.ts";
import { writeCapacity } from "../capacity/write-capacity.ts";

/**
 * Serves a pool's queue: the tenant that got least by its weight, of its projects likewise, and there by priority, then
 * arrival. Whoever its own quota blocks is passed over whole; a waiter for whom the pool is too full is not, so that small
 * requests never starve a large one.
 */
export async function serveQueue(capacity: Capacity, pool: WorkerPool, cause: Cause): Promise<void> {
  for (let page = FIRST_PAGE; ;) {
    if (pool.waiting === 0) return decontend(capacity, pool);
    const slots = pool.state === "ACTIVE" ? pool.currentSize - pool.used : 0;
    if (slots <= 0) return;
    page = Math.max(page, Math.min(slots, MAX_PAGE));
    // What the queue's reader must see.
    await writeCapacity(capacity);
    const tenants = await readQueue(capacity, pool, page);
    const served = serve(capacity, pool, tenants, cause);
    const hiding = tenants.some(({ projects }) => projects.some(hidesOthers));
    // Those whose project hid them had their turn before the one that needs more slots.
    if (pool.contended && !hiding) return;
    if (served > 0) continue;
    const more = hiding || mayHide(tenants, page);
    if (!more || page >= pool.waiting * pool.waiting) return;
    page *= 4;
  }
}

/** Tenants and projects that are read at once: at least, and, unless nothing comes of them, at most. */
const FIRST_PAGE = 8;
const MAX_PAGE = 256;

/** A page whose last one isn't blocked may leave out others. */
function mayHide(tenants: readonly QueuedTenant[], page: number): boolean {
  return [tenants, ...tenants.map(({ projects }) => projects)].some((queued) => isFull(queued, page));
}

function isFull(queued: readonly (QueuedTenant | QueuedProject)[], page: number): boolean {
  return queued.length >= page && queued.at(-1)?.blocked === false;
}

/** Whether all that were read of a project were passed over one by one, and there are more. */
function hidesOthers({ waiters, skipped, flow }: QueuedProject): boolean {
  return waiters.length === 0 && skipped > 0 && flow.waiting > skipped;
}

/** How many it served, or gave up for; `contended` then says whether somebody waits for more slots. */
function serve(capacity: Capacity, pool: WorkerPool, tenants: QueuedTenant[], cause: Cause): number {
  const passedOver = new Set<QueuedTenant | QueuedProject>();
  let served = 0;
  decontend(capacity, pool);
  for (const { flow } of tenants) contendFlow(capacity, flow, false);
  for (let tenant = least(tenants, passedOver); tenant; tenant = least(tenants, passedOver)) {
    const project = least(tenant.projects, passedOver);
    const lease = project?.waiters[0];
    if (!project || !lease) {
      // Its turn, and no waiter at hand: the others' turn comes once it is read anew.
      if (project && project.flow.waiting > 0 && served > 0) return served;
      passedOver.add(project ?? tenant);
      continue;
    }
    if (lease.state !== "WAITING") {
      // Granted elsewhere while this pool was joining those that it may choose from.
      project.waiters.shift();
      leaveQueues(capacity, lease);
      served += 1;
      continue;
    }
    if (isOverdue(lease, capacity.now)) {
      project.waiters.shift();
      endLease(capacity, lease, { type: "expire", at: capacity.now }, cause);
      served += 1;
      continue;
    }
    const obstacle = obstacleTo(lease, pool, tenant.scope, project.scope);
    if (obstacle) {
      announceObstacle(capacity, lease, obstacle, cause);
      if (lease.units > pool.currentSize || isBeyond(obstacle, lease.units)) {
        // Nothing that is given back makes room for it: only a larger pool or quota does.
        project.waiters.shift();
        project.skipped += 1;
        if (project.waiters.length === 0) passedOver.add(project);
        continue;
      }
      if (obstacle.reason === "POOL_FULL") {
        contend(capacity, pool);
        return served;
      }
      passedOver.add(obstacle.reason === "PROJECT_QUOTA" ? project : tenant);
      if (obstacle.reason === "TENANT_QUOTA") contendFlow(capacity, tenant.flow, true);
      continue;
    }
    project.waiters.shift();
    grant(capacity, lease, pool, cause);
    chargeFlows(capacity, pool, { tenant: weighted(tenant), project: weighted(project), units: lease.units });
    served += 1;
  }
  return served;
}

/** The flow with the least virtual time, but for those passed over; of equals the first by name. */
function least<Queued extends QueuedTenant | QueuedProject>(
  queued: readonly Queued[],
  passedOver: ReadonlySet<QueuedTenant | QueuedProject>,
): Queued | undefined {
  let first: Queued | undefined;
  for (const one of queued) {
    if (passedOver.has(one) || (first && first.flow.virtualTime <= one.flow.virtualTime)) continue;
    first = one;
  }
  return first;
}

function weighted({ flow, scope }: QueuedTenant | QueuedProject) {
  return { flow, weight: scope.quota?.weight ?? 1 };
}

/** From now on whoever comes queues. */
export function contend(capacity: Capacity, pool: WorkerPool): void {
  if (!pool.contended) capacity.changes.pools.add(keyOf(pool.tenantId, pool.id));
  pool.contended = true;
}

function decontend(capacity: Capacity, pool: WorkerPool): void {
  if (pool.contended) capacity.changes.pools.add(keyOf(pool.tenantId, pool.id));
  pool.contended = false;
}
