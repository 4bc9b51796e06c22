import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type AcquireLeaseRequest,
  AcquireLeaseRequestSchema,
  type LeaseOperation as LeaseOperationMessage,
  type ReleaseLeaseRequest,
  ReleaseLeaseRequestSchema,
  type RenewLeaseRequest,
  RenewLeaseRequestSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import {
  CapacityResource as CapacityResourceCode,
  Placement,
  PoolKind as PoolKindCode,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { definedEnumNamed, enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { requestProblems } from "@runtime-cloud/service-kit/validation";
import { CapacityResource, PoolKind } from "../../generated/prisma/client.ts";
import type { AcquireOperation, LeaseOperation, ReleaseOperation, RenewOperation } from "../desk/lease-operation.ts";
import { isPlainAcquire, isPlainRelease, isPlainRenew } from "../plain-requests.ts";

/** Who asks, and in what cause. */
export type Asked = Pick<LeaseOperation, "tenantId" | "cause">;

/**
 * One operation of many, checked by itself. `path` is where it is in its request, as in `operations[3]`. Throws
 * InvalidInput that names every field that is wrong from there.
 */
export function leaseOperation({ operation }: LeaseOperationMessage, asked: Asked, path: string): LeaseOperation {
  switch (operation.case) {
    case "acquire":
      if (!isPlainAcquire(operation.value)) refuse(AcquireLeaseRequestSchema, operation.value, `${path}.acquire`);
      return acquireOperation(operation.value, asked, `${path}.acquire.`);
    case "renew":
      if (!isPlainRenew(operation.value)) refuse(RenewLeaseRequestSchema, operation.value, `${path}.renew`);
      return renewOperation(operation.value, asked);
    case "release":
      if (!isPlainRelease(operation.value)) refuse(ReleaseLeaseRequestSchema, operation.value, `${path}.release`);
      return releaseOperation(operation.value, asked);
    case undefined:
      throw new InvalidInput([{ field: path, description: NO_OPERATION }]);
  }
}

export const NO_OPERATION = "names none of acquire, renew, release";

/**
 * What operations have in common that must take effect in their order: an acquire's holder, else the lease. Undefined
 * where the message tells neither.
 */
export function orderKey(message: LeaseOperationMessage | undefined): string | undefined {
  const operation = message?.operation;
  if (!operation?.case) return undefined;
  if (operation.case === "acquire") return `${operation.value.holderKind}/${operation.value.holderId}`;
  return operation.value.leaseId.toLowerCase();
}

/** Of a request that keeps the rules of its proto. Throws InvalidInput unless it names a pool or else a selector. */
export function acquireOperation(request: AcquireLeaseRequest, asked: Asked, path = ""): AcquireOperation {
  const { projectId, holderKind, holderId, priority } = request;
  return {
    kind: "acquire",
    tenantId: asked.tenantId,
    cause: asked.cause,
    projectId,
    holderKind,
    holderId,
    target: targetOf(request, path),
    resource: enumNamed(CapacityResource, CapacityResourceCode[request.resource]),
    units: request.units || 1,
    priority,
    ttlMs: milliseconds(request.ttl),
    waitMs: milliseconds(request.wait),
  };
}

/** Of a request that keeps the rules of its proto. */
export function renewOperation({ leaseId, fencingToken, ttl }: RenewLeaseRequest, asked: Asked): RenewOperation {
  const { tenantId, cause } = asked;
  return { kind: "renew", tenantId, cause, leaseId: leaseId.toLowerCase(), fencingToken, ttlMs: milliseconds(ttl) };
}

/** Of a request that keeps the rules of its proto. */
export function releaseOperation({ leaseId, fencingToken }: ReleaseLeaseRequest, asked: Asked): ReleaseOperation {
  const { tenantId, cause } = asked;
  return { kind: "release", tenantId, cause, leaseId: leaseId.toLowerCase(), fencingToken };
}

function targetOf({ poolId, selector }: AcquireLeaseRequest, path: string): AcquireOperation["target"] {
  if (!selector) {
    if (poolId !== "") return { poolId };
    throw new InvalidInput([{ field: `${path}poolId`, description: "is empty: name a pool, or send a selector" }]);
  }
  if (poolId !== "") {
    throw new InvalidInput([{ field: `${path}selector`, description: "comes beside poolId: send one of the two" }]);
  }
  const { kind, labels, placement } = selector;
  return {
    selector: {
      kind: definedEnumNamed(PoolKind, PoolKindCode[kind]),
      labels,
      placement: placement === Placement.SPREAD ? "SPREAD" : "PACK",
    },
  };
}

/** Part of a millisecond counts as one, so that no lifetime or patience comes out as none. */
function milliseconds(duration: Duration | undefined): number {
  return duration ? Math.ceil(durationMs(duration)) : 0;
}

function refuse<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>, path: string): void {
  const problems = requestProblems(schema, message);
  if (problems.length === 0) return;
  throw new InvalidInput(problems.map(({ field, description }) => ({ field: `${path}.${field}`, description })));
}
