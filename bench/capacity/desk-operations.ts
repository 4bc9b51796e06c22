import type {
  AcquireOperation,
  ExpireOperation,
  ReleaseOperation,
  RenewOperation,
} from "@runtime-cloud/execution-capacity/desk/lease-operation";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { type LiveLease, PROJECT } from "./lease-rows.ts";

const CAUSE = { actor: "bench", correlationId: "bench" };

export type HeldLease = Pick<LiveLease, "tenantId" | "id">;

/** One slot for a holder that asks for the first time. It is refused where it would have to wait, unless it may. */
export function acquisition(
  asked: Pick<AcquireOperation, "tenantId" | "ttlMs"> &
    Partial<Pick<AcquireOperation, "projectId" | "waitMs">> & { poolId: string },
): AcquireOperation {
  const { tenantId, poolId, ttlMs, projectId = PROJECT, waitMs = 0 } = asked;
  return {
    kind: "acquire",
    tenantId,
    projectId,
    holderKind: "Attempt",
    holderId: uuidv7(),
    target: { poolId },
    resource: undefined,
    units: 1,
    priority: 0,
    ttlMs,
    waitMs,
    cause: CAUSE,
  };
}

export function renewal(lease: LiveLease, ttlMs: number): RenewOperation {
  const { tenantId, id, fencingToken } = lease;
  return { kind: "renew", tenantId, leaseId: id, fencingToken, ttlMs, cause: CAUSE };
}

export function release({ tenantId, id }: HeldLease): ReleaseOperation {
  return { kind: "release", tenantId, leaseId: id, cause: CAUSE };
}

export function expiry({ tenantId, id }: HeldLease): ExpireOperation {
  return { kind: "expire", tenantId, leaseId: id, cause: CAUSE };
}
