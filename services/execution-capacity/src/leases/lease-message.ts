import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CapacityLease as LeaseMessage,
  CapacityLeaseSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import {
  CapacityResource,
  LeaseState,
  ReleaseReason,
  WaitReason,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import type { CapacityLease } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";
import { type Standing, standingsOf } from "../queue/waiting.ts";

export type { LeaseMessage };

/** One tenant's leases as they are answered; those that wait with how they stand now. */
export async function leaseMessages(tx: Tx, leases: readonly CapacityLease[]): Promise<LeaseMessage[]> {
  const standings = await standingsOf(tx, leases);
  return leases.map((lease) => messageOf(lease, standings.get(lease.id)));
}

export async function leaseMessage(tx: Tx, lease: CapacityLease): Promise<LeaseMessage> {
  if (lease.state !== "WAITING") return messageOf(lease);
  const standings = await standingsOf(tx, [lease]);
  return messageOf(lease, standings.get(lease.id));
}

/** The lifetime that a holder has left and when it should renew, both counted from when it sent its request. */
export function lifetime(
  { id, state, expiresAt }: CapacityLease,
  now: Date,
): { ttl?: Duration; renewAfter?: Duration } {
  if (state !== "ACTIVE" || !expiresAt) return {};
  const leftMs = Math.max(0, expiresAt.getTime() - now.getTime());
  return { ttl: durationFromMs(leftMs), renewAfter: durationFromMs(Math.floor((leftMs / 3) * (1 - jitter(id)))) };
}

/** A lease as it is answered; `standing` is how it stands while it waits. */
export function messageOf(lease: CapacityLease, standing?: Standing): LeaseMessage {
  const { fencingToken, grantedAt, expiresAt, endedAt, releaseReason, executionSeconds, waitDeadline } = lease;
  return create(CapacityLeaseSchema, {
    leaseId: lease.id,
    tenantId: lease.tenantId,
    projectId: lease.projectId,
    holderKind: lease.holderKind,
    holderId: lease.holderId,
    resource: CapacityResource[lease.resource],
    poolId: lease.poolId,
    units: lease.units,
    state: LeaseState[lease.state],
    ...(fencingToken !== null && { fencingToken }),
    ...(grantedAt && { grantedAt: timestampFromDate(grantedAt) }),
    ...(expiresAt && { expiresAt: timestampFromDate(expiresAt) }),
    ...(endedAt && { endedAt: timestampFromDate(endedAt) }),
    ...(releaseReason && { releaseReason: ReleaseReason[releaseReason] }),
    ...(executionSeconds !== null && { executionSeconds }),
    ...(standing && {
      waiting: {
        reason: WaitReason[standing.reason],
        position: standing.position,
        ...(waitDeadline && { waitDeadline: timestampFromDate(waitDeadline) }),
      },
    }),
  });
}

const MAX_JITTER = 0.1;

/** Spreads the renewals of leases that were granted together: up to a tenth earlier, by the lease's id. */
function jitter(leaseId: string): number {
  return (MAX_JITTER * Number.parseInt(leaseId.slice(-4), 16)) / 0xffff;
}
