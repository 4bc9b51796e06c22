import { IllegalTransition } from "@runtime-cloud/service-kit/errors";
import type { CapacityLease } from "../../generated/prisma/client.ts";
import { type Capacity, keyOf } from "../capacity/capacity.ts";
import { endLease, isOpen, unknownLease } from "../capacity/capacity-lease.ts";
import type { ReleaseOperation } from "./lease-operation.ts";

/** Ends a lease for its holder, or gives it as it ended before. Throws NotFound, and IllegalTransition for another token. */
export function release(capacity: Capacity, operation: ReleaseOperation): CapacityLease {
  const { tenantId, leaseId, fencingToken, cause } = operation;
  const lease = capacity.leases.get(keyOf(tenantId, leaseId));
  if (!lease) throw unknownLease(leaseId);
  if (fencingToken !== undefined && lease.fencingToken !== fencingToken) {
    const { id, state } = lease;
    const reason = "stale-token";
    throw new IllegalTransition({ aggregate: "CapacityLease", id, state, event: "release", reason, allowed: [] });
  }
  if (!isOpen(lease)) return lease;
  return endLease(capacity, lease, { type: "release", at: capacity.now, reason: "HOLDER" }, cause);
}
