import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CapacityLeaseSchema,
  type LeaseSessionRequest,
  LeaseSessionResponseSchema,
  type LeaseSessionResponse,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import {
  CapacityResource,
  LeaseState,
  ReleaseReason,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { HOT_SCOPE } from "./hot-scope.ts";

const { tenantId, projectId, poolId, holderKind, ttlSeconds } = HOT_SCOPE;

/** A LeaseSession whose leases exist only in their messages, which say as much as ours. */
export async function* noopSession(requests: AsyncIterable<LeaseSessionRequest>): AsyncGenerator<LeaseSessionResponse> {
  let fencingToken = 0n;
  for await (const { sequence, operation } of requests) {
    const asked = operation?.operation;
    if (asked?.case === "acquire") {
      fencingToken += 1n;
      const lease = granted(uuidv7(), asked.value.holderId, fencingToken);
      const ttl = { seconds: BigInt(ttlSeconds) };
      const acquired = { lease, ttl, renewAfter: { seconds: ttl.seconds / 3n, nanos: 1 } };
      yield answer({ sequence, result: { result: { case: "acquired", value: acquired } } });
    } else if (asked?.case === "release") {
      const { leaseId } = asked.value;
      const lease = {
        ...granted(leaseId, leaseId, fencingToken),
        ...ENDED,
        endedAt: timestampFromDate(systemClock.now()),
      };
      yield answer({ sequence, result: { result: { case: "released", value: { lease } } } });
    }
  }
}

const ENDED = { state: LeaseState.RELEASED, releaseReason: ReleaseReason.HOLDER, executionSeconds: 0n };

function granted(
  leaseId: string,
  holderId: string,
  fencingToken: bigint,
): Exclude<MessageInitShape<typeof CapacityLeaseSchema>, { $typeName: string }> {
  const now = timestampFromDate(systemClock.now());
  return {
    leaseId,
    tenantId,
    projectId,
    holderKind,
    holderId,
    poolId,
    units: 1,
    state: LeaseState.ACTIVE,
    fencingToken,
    grantedAt: now,
    expiresAt: now,
    resource: CapacityResource.RUNS,
  };
}

function answer(response: MessageInitShape<typeof LeaseSessionResponseSchema>): LeaseSessionResponse {
  return create(LeaseSessionResponseSchema, response);
}
