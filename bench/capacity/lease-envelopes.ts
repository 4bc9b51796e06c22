import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { envelop } from "@runtime-cloud/contracts/events/cloud-event";
import {
  CapacityLeaseGrantedSchema,
  CapacityLeaseReleasedSchema,
} from "@runtime-cloud/contracts/runtimecloud/events/v1/capacity_pb";
import { LeaseState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { HOT_SCOPE } from "./hot-scope.ts";

/** The event of a lease as JSON, which costs its maker as good as nothing: ids are put into a finished envelope. */
export type EnvelopeOf = (ids: { leaseId: string; eventId: string; holderId: string }) => string;

/** Envelopes of the size that ours have. */
export interface LeaseEnvelopes {
  readonly granted: EnvelopeOf;
  readonly released: EnvelopeOf;
  readonly grantedTopic: string;
  readonly releasedTopic: string;
}

const TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

export function leaseEnvelopes(): LeaseEnvelopes {
  const [leaseId, eventId, holderId] = [uuidv7(), uuidv7(), uuidv7()];
  const { tenantId, projectId, poolId, holderKind } = HOT_SCOPE;
  const at = systemClock.now();
  const meta = {
    id: eventId,
    at,
    subject: { id: leaseId, tenantId, projectId },
    cause: { correlationId: uuidv7(), traceparent: TRACEPARENT },
  };
  const lease = { leaseId, tenantId, holderKind, holderId, poolId };
  const granted = envelop(
    CapacityLeaseGrantedSchema,
    { ...lease, expiresAt: timestampFromDate(at) },
    { ...meta, aggregateVersion: 1 },
  );
  const released = envelop(
    CapacityLeaseReleasedSchema,
    { ...lease, state: LeaseState.RELEASED, executionSeconds: 0n },
    { ...meta, aggregateVersion: 2 },
  );
  const withIds = (envelope: unknown): EnvelopeOf => {
    const parts = JSON.stringify(envelope).split(new RegExp(`(${leaseId}|${eventId}|${holderId})`));
    return (ids) => {
      const inserted: Record<string, string> = {
        [leaseId]: ids.leaseId,
        [eventId]: ids.eventId,
        [holderId]: ids.holderId,
      };
      return parts.map((part) => inserted[part] ?? part).join("");
    };
  };
  return {
    granted: withIds(granted),
    released: withIds(released),
    grantedTopic: granted.type,
    releasedTopic: released.type,
  };
}
