import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  LeaseState as LeaseStateCode,
  type ReleaseReason,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { assertEvent, setup, type StateValueFrom } from "xstate";
import { announcing } from "./announce.ts";
import type { EnumName } from "./enum-name.ts";
import type { IntegrationEvent } from "./integration-event.ts";

export interface LeaseColumns {
  id: string;
  tenantId: string;
  holderKind: string;
  holderId: string;
  poolTenantId: string;
  poolId: string;
  fencingToken: bigint | null;
  grantedAt: Date | null;
  expiresAt: Date | null;
  waitDeadline: Date | null;
  endedAt: Date | null;
  releaseReason: EnumName<typeof ReleaseReason> | null;
  executionSeconds: bigint | null;
}

export type LeaseEvent =
  | { type: "grant"; at: Date; expiresAt: Date; fencingToken: bigint; poolTenantId: string; poolId: string }
  | { type: "renew"; at: Date; until: Date }
  | { type: "release"; at: Date; reason: EnumName<typeof ReleaseReason> }
  | { type: "expire"; at: Date }
  | { type: "revoke"; at: Date; reason: EnumName<typeof ReleaseReason> };

type EndedState = "RELEASED" | "EXPIRED" | "REVOKED";

const lease = setup({
  types: {
    context: {} as LeaseColumns,
    input: {} as LeaseColumns,
    events: {} as LeaseEvent,
    emitted: {} as IntegrationEvent,
  },
  guards: {
    isDue: ({ context }, { at }: { at: Date }) => context.expiresAt !== null && at >= context.expiresAt,
    isLive: ({ context }, { at }: { at: Date }) => context.expiresAt !== null && at < context.expiresAt,
    waitedTooLong: ({ context }, { at }: { at: Date }) => context.waitDeadline !== null && at >= context.waitDeadline,
  },
});

const recordGrant = lease.assign(({ event }) => {
  assertEvent(event, "grant");
  const { at: grantedAt, expiresAt, fencingToken, poolTenantId, poolId } = event;
  return { fencingToken, grantedAt, expiresAt, poolTenantId, poolId, waitDeadline: null };
});
const recordRenewal = lease.assign(({ event }) => {
  assertEvent(event, "renew");
  return { expiresAt: event.until };
});
const recordEnd = lease.assign(({ context, event }) => {
  assertEvent(event, ["release", "expire", "revoke"]);
  return {
    endedAt: event.at,
    releaseReason: event.type === "expire" ? ("TTL" as const) : event.reason,
    executionSeconds: executionSeconds(context, event.at),
  };
});
const recordGivingUp = lease.assign({ endedAt: ({ event }) => event.at });

const holder = ({ id, tenantId, holderKind, holderId, poolId }: LeaseColumns) => ({
  leaseId: id,
  tenantId,
  holderKind,
  holderId,
  poolId,
});
const announceGranted = announcing(
  "CapacityLeaseGranted",
  lease.emit(({ context }) => ({
    type: "CapacityLeaseGranted",
    ...holder(context),
    expiresAt: context.expiresAt ? timestampFromDate(context.expiresAt) : undefined,
  })),
);
const announceEnded = (state: EndedState) =>
  announcing(
    "CapacityLeaseReleased",
    lease.emit(({ context }) => ({
      type: "CapacityLeaseReleased",
      ...holder(context),
      state: LeaseStateCode[state],
      executionSeconds: context.executionSeconds ?? 0n,
    })),
  );
const atInstant = <Guard extends "isDue" | "isLive" | "waitedTooLong">(type: Guard) => ({
  type,
  params: ({ event }: { event: { at: Date } }) => event,
});

/**
 * The right of one holder to slots of one pool until an instant, by the database's clock. One that is granted at once
 * never waits: its grant is its birth.
 */
export const capacityLease = lease.createMachine({
  id: "CapacityLease",
  meta: { bornBy: ["grant"] },
  context: ({ input }) => input,
  initial: "WAITING",
  states: {
    WAITING: {
      description: "The holder waits; whatever frees capacity grants it.",
      on: {
        grant: { target: "ACTIVE", actions: [recordGrant, announceGranted] },
        release: { target: "CANCELLED", actions: recordGivingUp },
        revoke: { target: "CANCELLED", actions: recordGivingUp },
        expire: { guard: atInstant("waitedTooLong"), target: "CANCELLED", actions: recordGivingUp },
      },
    },
    ACTIVE: {
      description: "The holder owns its slots; it renews or releases.",
      on: {
        renew: { guard: atInstant("isLive"), actions: recordRenewal },
        release: { target: "RELEASED", actions: [recordEnd, announceEnded("RELEASED")] },
        expire: { guard: atInstant("isDue"), target: "EXPIRED", actions: [recordEnd, announceEnded("EXPIRED")] },
        revoke: { target: "REVOKED", actions: [recordEnd, announceEnded("REVOKED")] },
      },
    },
    RELEASED: { type: "final", description: "Given back by its holder, or because its holder ended." },
    EXPIRED: { type: "final", description: "Its time ran out before it was renewed." },
    REVOKED: { type: "final", description: "Taken back by an operator or at a drain's deadline." },
    CANCELLED: { type: "final", description: "Gave up waiting; nothing was ever granted." },
  },
});
export type LeaseState = StateValueFrom<typeof capacityLease>;

/** Whole seconds from the grant to the earlier of end and expiry; never negative. */
function executionSeconds({ grantedAt, expiresAt }: LeaseColumns, endedAt: Date): bigint {
  if (!grantedAt || !expiresAt) return 0n;
  const until = Math.min(endedAt.getTime(), expiresAt.getTime());
  return BigInt(Math.max(0, Math.floor((until - grantedAt.getTime()) / 1000)));
}
