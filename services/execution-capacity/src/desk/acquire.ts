import { Exhausted, IllegalTransition, InvalidInput, NotFound } from "@runtime-cloud/service-kit/errors";
import { type CapacityLease, CapacityResource, type PoolKind, type WorkerPool } from "../../generated/prisma/client.ts";
import {
  type Capacity,
  flowIn,
  holderKey,
  type HolderOfResource,
  keyOf,
  leaseKey,
  scopeOf,
} from "../capacity/capacity.ts";
import { beginWaiting, endLease, grant, isOverdue, type LeaseRequest, unborn } from "../capacity/capacity-lease.ts";
import { announceObstacle } from "./exceeded.ts";
import type { AcquireOperation } from "./lease-operation.ts";
import { isBeyond, type Obstacle, obstacleTo } from "./obstacle.ts";
import { bestFor } from "./placement.ts";
import { contendFlow, enterQueues } from "../queue/queue.ts";
import { contend } from "../queue/serve-queue.ts";

/** When somebody who was refused at once may ask again. */
const RETRY_MS = 1_000;

/**
 * The lease of a holder: the one that it has or waits for, else a new one, if it can be granted at once. Undefined when
 * it can't, for now: `enqueue` is what then remains. Throws what is wrong with the request.
 */
export function acquire(
  capacity: Capacity,
  operation: AcquireOperation,
  pools: readonly WorkerPool[],
): CapacityLease | undefined {
  const holder = holderOf(capacity, operation, pools);
  const existing = existingLease(capacity, operation, holder);
  if (existing) return existing;
  const request = requestFor(operation, holder, pools);
  refuseImpossible(request, pools);
  const free = pools.filter((pool) => !obstacleIn(capacity, request, pool));
  const pool = bestFor(free, request.units, placementOf(operation));
  return pool && grant(capacity, unborn(capacity, request), pool, operation.cause);
}

/** Has a holder wait that couldn't be granted at once. Throws Exhausted when it doesn't want to. */
export function enqueue(capacity: Capacity, operation: AcquireOperation, pools: readonly WorkerPool[]): CapacityLease {
  const { waitMs, cause, target } = operation;
  const holder = holderOf(capacity, operation, pools);
  // Of two that came together the first one waits by now.
  const existing = existingLease(capacity, operation, holder);
  if (existing) return existing;
  const request = requestFor(operation, holder, pools);
  const fitting = pools.filter((pool) => largestSize(pool) >= Math.min(request.units, largestOf(pools)));
  const pool = bestFor(fitting, request.units, placementOf(operation)) ?? unknownPools(operation);
  const obstacle = obstacleIn(capacity, request, pool) ?? behindOthers(pool);
  if (waitMs <= 0) throw new Exhausted({ ...obstacle, retryAfterMs: RETRY_MS });

  const waitDeadline = new Date(capacity.now.getTime() + waitMs);
  const lease = beginWaiting(capacity, unborn(capacity, { ...request, ...placeIn(pool), waitDeadline }), cause);
  for (const other of fitting) {
    if (obstacleIn(capacity, request, other)?.reason === "POOL_FULL") contend(capacity, other);
  }
  enterQueues(capacity, lease, fitting, "selector" in target ? target.selector : undefined);
  if (obstacle.reason === "TENANT_QUOTA" && !isBeyond(obstacle, request.units)) {
    for (const other of fitting) contendFlow(capacity, flowIn(capacity, placeIn(other), request.tenantId, ""), true);
  }
  return announceObstacle(capacity, lease, obstacle, cause);
}

function holderOf(capacity: Capacity, operation: AcquireOperation, pools: readonly WorkerPool[]): HolderOfResource {
  const { tenantId, holderKind, holderId, target } = operation;
  const kind = "selector" in target ? target.selector.kind : pools[0]?.kind;
  const resource = kind ? resourceOf(operation, kind) : resourceHeld(capacity, operation);
  if (!capacity.endedHolders.has(keyOf(tenantId, holderKind, holderId))) {
    return { tenantId, holderKind, holderId, resource };
  }
  const refusal = { state: "ENDED", event: "acquire", reason: "holder-ended", allowed: [] };
  throw new IllegalTransition({ aggregate: holderKind, id: holderId, ...refusal });
}

/** What is asked for, in full. Throws what is wrong with it by itself. */
export function requestOf(capacity: Capacity, operation: AcquireOperation, pools: readonly WorkerPool[]): LeaseRequest {
  return requestFor(operation, holderOf(capacity, operation, pools), pools);
}

/** Of a holder whose pool isn't the tenant's to use any more: what it has there goes on. */
function resourceHeld({ live, leases }: Capacity, operation: AcquireOperation): CapacityResource {
  const { tenantId, holderKind, holderId, target } = operation;
  const held = Object.values(CapacityResource).find((resource) => {
    const lease = leases.get(live.get(holderKey({ tenantId, holderKind, holderId, resource })) ?? "");
    return lease && "poolId" in target && lease.poolId === target.poolId;
  });
  return held ?? unknownPools(operation);
}

function requestFor(operation: AcquireOperation, holder: HolderOfResource, pools: readonly WorkerPool[]): LeaseRequest {
  const { projectId, units, priority, ttlMs } = operation;
  const pool = pools[0] ?? unknownPools(operation);
  const ttlSeconds = Math.ceil(ttlMs / 1_000);
  return { ...holder, projectId, units, priority, ttlSeconds, waitDeadline: null, ...placeIn(pool) };
}

function unknownPools({ target }: AcquireOperation): never {
  if ("poolId" in target) throw new NotFound(`pool ${target.poolId} does not exist: create it with SetWorkerPool`);
  const { kind, labels } = target.selector;
  const wanted = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const description = `no ${kind} pool carries ${wanted.join(", ") || "it"}: create one, or ask for other labels`;
  throw new InvalidInput([{ field: "selector", description }]);
}

const charged: Readonly<Record<PoolKind, CapacityResource | undefined>> = {
  RUN_WORKERS: "RUNS",
  SANDBOX_HOSTS: "SANDBOXES",
  GENERAL: undefined,
};

function resourceOf({ resource }: AcquireOperation, kind: PoolKind): CapacityResource {
  const own = charged[kind];
  if (resource && own && resource !== own) {
    throw new InvalidInput([{ field: "resource", description: `a ${kind} pool charges ${own}: leave it out` }]);
  }
  const known = own ?? resource;
  if (known) return known;
  const description = "a GENERAL pool charges what the request names: RUNS or SANDBOXES";
  throw new InvalidInput([{ field: "resource", description }]);
}

/** A holder's live lease is its answer, if that is what it asks for again. */
function existingLease(
  capacity: Capacity,
  operation: AcquireOperation,
  holder: HolderOfResource,
): CapacityLease | undefined {
  const { live, leases, now } = capacity;
  const lease = leases.get(live.get(holderKey(holder)) ?? "");
  if (!lease) return undefined;
  if (isOverdue(lease, now)) {
    endLease(capacity, lease, { type: "expire", at: now }, operation.cause);
    return undefined;
  }
  const differing = [
    ...(lease.units === operation.units ? [] : [{ field: "units", so: `has ${lease.units}` }]),
    ...(lease.projectId === operation.projectId ? [] : [{ field: "projectId", so: `has ${lease.projectId}` }]),
    ...differingTarget(capacity, operation, lease),
  ];
  if (differing.length === 0) return lease;
  throw new InvalidInput(
    differing.map(({ field, so }) => ({
      field,
      description: `the holder's lease ${lease.id} ${so}: ask for that again, or release it first`,
    })),
  );
}

/**
 * A selector is answered by whatever lease the holder has, whatever has become of the labels since. A pool isn't answered
 * by a lease that waits by a selector: it may yet be granted in another one.
 */
function differingTarget({ places }: Capacity, { target }: AcquireOperation, lease: CapacityLease) {
  if ("selector" in target) return [];
  if (lease.poolId !== target.poolId) return [{ field: "poolId", so: `has ${lease.poolId}` }];
  const selecting = lease.state === "WAITING" && places.get(leaseKey(lease))?.some((place) => place.selecting);
  return selecting ? [{ field: "poolId", so: "waits by a selector" }] : [];
}

/** What no change of use can grant, however long one waits. */
function refuseImpossible({ units }: LeaseRequest, pools: readonly WorkerPool[]): void {
  const open = pools.filter(({ state }) => state !== "RETIRED" && state !== "DRAINED");
  const [first] = pools;
  if (first && open.length === 0) {
    const { id, state } = first;
    const reason = "not-in-this-state";
    throw new IllegalTransition({ aggregate: "WorkerPool", id, state, event: "acquire", reason, allowed: [] });
  }
  const largest = largestOf(open);
  // A pool without any slot yet may be about to get its first ones.
  if (units <= largest || (largest === 0 && units === 1)) return;
  const description = `must be ${Math.max(1, largest)} or less: no such pool has more slots`;
  throw new InvalidInput([{ field: "units", description }]);
}

/** Slots that a pool has, or is about to have. */
function largestSize({ currentSize, desiredSize }: WorkerPool): number {
  return Math.max(currentSize, desiredSize);
}

function largestOf(pools: readonly WorkerPool[]): number {
  return Math.max(0, ...pools.map(largestSize));
}

/** What is in a newcomer's way: its limits, the pool's, and those who wait already. */
export function obstacleIn(
  capacity: Capacity,
  request: Pick<LeaseRequest, "tenantId" | "projectId" | "units" | "resource">,
  pool: WorkerPool,
): Obstacle | undefined {
  const { tenantId, projectId } = request;
  const obstacle = obstacleTo(request, pool, scopeOf(capacity, tenantId, ""), scopeOf(capacity, tenantId, projectId));
  if (obstacle) return obstacle;
  const tenant = flowIn(capacity, placeIn(pool), tenantId, "");
  const project = flowIn(capacity, placeIn(pool), tenantId, projectId);
  const behindOwn = project.waiting > 0 || (tenant.contended && tenant.waiting > 0);
  return pool.contended || behindOwn ? behindOthers(pool) : undefined;
}

function behindOthers({ id }: WorkerPool): Obstacle {
  return { reason: "POOL_FULL", subject: `pool:${id}`, description: `pool ${id} serves those who wait for it first` };
}

function placeIn({ tenantId: poolTenantId, id: poolId }: WorkerPool) {
  return { poolTenantId, poolId };
}

export function placementOf({ target }: AcquireOperation) {
  return "selector" in target ? target.selector.placement : "PACK";
}
