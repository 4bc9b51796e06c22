import type { Cause } from "@runtime-cloud/eventing/cause";
import { IllegalTransition, NotFound } from "@runtime-cloud/service-kit/errors";
import { capacityLease, type LeaseEvent } from "@runtime-cloud/state-machines/capacity-lease";
import { compiled } from "@runtime-cloud/state-machines/compiled";
import { CREATE, UNBORN } from "@runtime-cloud/state-machines/lifecycle-edges";
import type { CapacityLease, WorkerPool } from "../../generated/prisma/client.ts";
import { type Capacity, holderKey, leaseKey } from "./capacity.ts";
import { charge, giveBack } from "./charge.ts";
import type { Tx } from "../context.ts";
import { pastLease } from "../leases/past-leases.ts";
import { leaveQueues } from "../queue/queue.ts";
import { recordTransition } from "./recording.ts";

const decideLease = compiled(capacityLease);
const aggregate = capacityLease.id;

/** What a holder asks for. */
export type LeaseRequest = Pick<
  CapacityLease,
  | "tenantId"
  | "projectId"
  | "holderKind"
  | "holderId"
  | "resource"
  | "poolTenantId"
  | "poolId"
  | "units"
  | "priority"
  | "ttlSeconds"
  | "waitDeadline"
>;

type Ending = Exclude<LeaseEvent, { type: "grant" | "renew" }>;

/** A new lease, before its first event. */
export function unborn({ newId, now }: Capacity, request: LeaseRequest): CapacityLease {
  return {
    ...request,
    id: newId(),
    version: 0,
    state: "WAITING",
    waitReason: null,
    requestedAt: now,
    fencingToken: null,
    grantedAt: null,
    expiresAt: null,
    dueAt: request.waitDeadline,
    endedAt: null,
    releaseReason: null,
    executionSeconds: null,
  };
}

/** A lease begins to wait. */
export function beginWaiting(capacity: Capacity, lease: CapacityLease, cause: Cause): CapacityLease {
  recordTransition(
    capacity,
    { aggregate, row: lease, version: 0, from: UNBORN, event: CREATE, to: lease.state, emitted: [] },
    cause,
  );
  return keep(capacity, lease, "born");
}

/** Grants an unborn or a waiting lease in a pool: the caller has found no obstacle to it. */
export function grant(capacity: Capacity, lease: CapacityLease, pool: WorkerPool, cause: Cause): CapacityLease {
  const { now, leases } = capacity;
  const event = {
    type: "grant",
    at: now,
    expiresAt: new Date(now.getTime() + lease.ttlSeconds * 1_000),
    fencingToken: pool.nextToken,
    poolTenantId: pool.tenantId,
    poolId: pool.id,
  } as const;
  const waits = leases.has(leaseKey(lease));
  if (waits) leaveQueues(capacity, lease);
  pool.nextToken += 1n;
  const granted = moved(capacity, lease, event, cause, waits ? "moved" : "born");
  charge(capacity, granted);
  return granted;
}

/** Ends a lease and gives back what it held. One whose time is over ends by that, whoever asks. */
export function endLease(capacity: Capacity, lease: CapacityLease, event: Ending, cause: Cause): CapacityLease {
  const { now } = capacity;
  if (lease.state === "WAITING") leaveQueues(capacity, lease);
  const ended = moved(capacity, lease, isOverdue(lease, now) ? { type: "expire", at: now } : event, cause, "moved");
  if (lease.state === "ACTIVE") giveBack(capacity, lease, ended.executionSeconds ?? 0n);
  return ended;
}

/** A renewal changes no state, so it has no history: only its lease's instant moves. */
export function extend(capacity: Capacity, lease: CapacityLease, until: Date): CapacityLease {
  const decision = decideLease(lease, { type: "renew", at: capacity.now, until });
  if (!decision.accepted) throw refusal(lease, "renew", decision);
  // It is looked after no later than it ends, though most often earlier: a later instant costs an index.
  const dueAt = lease.dueAt && lease.dueAt <= until ? lease.dueAt : until;
  return keep(capacity, { ...lease, ...decision.patch, dueAt, version: lease.version + 1 }, "moved", lease.version);
}

/** Looks after a lease at its expiry, which renewals have moved. */
export function lookLater(capacity: Capacity, lease: CapacityLease): CapacityLease {
  const later = { ...lease, dueAt: lease.expiresAt ?? lease.waitDeadline, version: lease.version + 1 };
  return keep(capacity, later, "moved", lease.version);
}

export function keepWaitReason(capacity: Capacity, lease: CapacityLease, waitReason: CapacityLease["waitReason"]) {
  if (lease.waitReason === waitReason) return lease;
  return keep(capacity, { ...lease, waitReason, version: lease.version + 1 }, "moved", lease.version);
}

function moved(
  capacity: Capacity,
  lease: CapacityLease,
  event: LeaseEvent,
  cause: Cause,
  how: "born" | "moved",
): CapacityLease {
  const decision = decideLease(lease, event);
  if (!decision.accepted) throw refusal(lease, event.type, decision);
  const { state, patch, emitted } = decision;
  const version = how === "born" ? 0 : lease.version + 1;
  const after = { ...lease, ...patch, state, version };
  const due = state === "ACTIVE" ? after.expiresAt : null;
  const from = how === "born" ? UNBORN : lease.state;
  recordTransition(capacity, { aggregate, row: after, version, from, event: event.type, to: state, emitted }, cause);
  return keep(capacity, { ...after, dueAt: due }, how, lease.version);
}

function keep(capacity: Capacity, lease: CapacityLease, how: "born" | "moved", versionBefore = 0): CapacityLease {
  const { leases, live, changes } = capacity;
  const key = leaseKey(lease);
  leases.set(key, lease);
  if (isOpen(lease)) live.set(holderKey(lease), key);
  else if (live.get(holderKey(lease)) === key) live.delete(holderKey(lease));
  if (how === "born") changes.born.add(key);
  else if (!changes.born.has(key) && !changes.moved.has(key)) changes.moved.set(key, versionBefore);
  return lease;
}

/** Whether a lease's lifetime, or its holder's patience, is over. */
export function isOverdue({ state, expiresAt, waitDeadline }: CapacityLease, now: Date): boolean {
  const end = state === "ACTIVE" ? expiresAt : waitDeadline;
  return end !== null && end <= now;
}

export function isOpen({ state }: CapacityLease): boolean {
  return state === "WAITING" || state === "ACTIVE";
}

export function unknownLease(id: string): NotFound {
  return new NotFound(`lease ${id} does not exist`);
}

/** A lease of the tenant, also one that ended long ago. */
export async function ownLease(tx: Tx, tenantId: string, id: string): Promise<CapacityLease> {
  const lease =
    (await tx.capacityLease.findUnique({ where: { tenantId_id: { tenantId, id } } })) ??
    (await pastLease(tx, tenantId, id));
  if (!lease) throw unknownLease(id);
  return lease;
}

function refusal({ id, state }: CapacityLease, event: string, { because: reason, allowed }: Refused) {
  return new IllegalTransition({ aggregate, id, state, event, reason, allowed });
}

interface Refused {
  because: string;
  allowed: string[];
}
