import { commit } from "@runtime-cloud/eventing/commit";
import { accept, begin } from "@runtime-cloud/eventing/decision";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { capacityLease, type LeaseEvent } from "@runtime-cloud/state-machines/capacity-lease";
import type { CapacityLease, WorkerPool } from "../generated/prisma/client.ts";
import { assertCovered, type Capacity } from "./capacity-lock.ts";
import { charge, giveBack } from "./charge.ts";
import type { ServiceUnit, Tx } from "./context.ts";

/** What a holder asks for. */
export type LeaseRequest = Pick<
  CapacityLease,
  | "tenantId"
  | "projectId"
  | "holderKind"
  | "holderId"
  | "poolTenantId"
  | "poolId"
  | "units"
  | "priority"
  | "ttlSeconds"
  | "waitDeadline"
>;

/** Puts a holder in its pool's queue. Every lease begins there, so that none overtakes. */
export async function enqueue({ unit, now }: Capacity, request: LeaseRequest): Promise<CapacityLease> {
  const row = {
    ...request,
    id: unit.newId(),
    requestedAt: now,
    fencingToken: null,
    grantedAt: null,
    expiresAt: null,
    endedAt: null,
    releaseReason: null,
    executionSeconds: null,
  };
  return commit(unit, begin(capacityLease, row), ({ state }) =>
    unit.tx.capacityLease.create({ data: { ...row, state } }),
  );
}

export async function advanceLease(unit: ServiceUnit, lease: CapacityLease, event: LeaseEvent): Promise<CapacityLease> {
  const { id, version } = lease;
  return commit(unit, accept(capacityLease, lease, event), (columns) =>
    unit.tx.capacityLease.update({ where: { id, version }, data: { ...columns, version: { increment: 1 } } }),
  );
}

/** Grants a waiting lease: the caller has found no obstacle to it. Gives the pool as it is then. */
export async function grant(capacity: Capacity, lease: CapacityLease): Promise<WorkerPool> {
  assertCovered(capacity, lease);
  const { unit, wakes, now } = capacity;
  const pool = await charge(unit.tx, lease);
  const expiresAt = new Date(now.getTime() + lease.ttlSeconds * 1_000);
  await advanceLease(unit, lease, { type: "grant", at: now, expiresAt, fencingToken: pool.nextToken - 1n });
  unit.after(() => wakes.arm("lease-expiry", expiresAt, { pool: pool.id }));
  return pool;
}

/** Ends a lease and gives back what it held. One whose time is over ends by that, whoever asks. */
export async function endLease(
  capacity: Capacity,
  lease: CapacityLease,
  event: Exclude<LeaseEvent, { type: "grant" | "renew" }>,
): Promise<CapacityLease> {
  assertCovered(capacity, lease);
  const { unit, now } = capacity;
  const ended = await advanceLease(unit, lease, isOverdue(lease, now) ? { type: "expire", at: now } : event);
  if (lease.state === "ACTIVE") await giveBack(unit.tx, lease);
  return ended;
}

/** Whether a lease's lifetime, or its holder's patience, is over. */
export function isOverdue({ state, expiresAt, waitDeadline }: CapacityLease, now: Date): boolean {
  const end = state === "ACTIVE" ? expiresAt : waitDeadline;
  return end !== null && end <= now;
}

export function isOpen({ state }: CapacityLease): boolean {
  return state === "WAITING" || state === "ACTIVE";
}

export async function ownLease(tx: Tx, tenantId: string, id: string): Promise<CapacityLease> {
  const lease = await tx.capacityLease.findFirst({ where: { id, tenantId } });
  if (!lease) throw new NotFound(`lease ${id} does not exist`);
  return lease;
}
