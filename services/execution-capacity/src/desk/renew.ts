import { type Capacity, keyOf } from "../capacity/capacity.ts";
import { extend, isOverdue, unknownLease } from "../capacity/capacity-lease.ts";
import type { LeaseOutcome, RenewOperation } from "./lease-operation.ts";

/** Extends a live lease; it never revives one. Throws NotFound, and IllegalTransition for one that waits. */
export function renew(capacity: Capacity, { tenantId, leaseId, fencingToken, ttlMs }: RenewOperation): LeaseOutcome {
  const { now, leases, drainDeadlines } = capacity;
  const key = keyOf(tenantId, leaseId);
  const lease = leases.get(key);
  if (!lease) throw unknownLease(leaseId);
  if (lease.fencingToken !== null && lease.fencingToken !== fencingToken) {
    return { lease, renewal: "STALE_TOKEN", now };
  }
  if (lease.state !== "WAITING" && (lease.state !== "ACTIVE" || isOverdue(lease, now))) {
    return { lease, renewal: "ALREADY_ENDED", now };
  }
  // Never earlier than before, except that in a pool that drains no lease outlives the deadline.
  const wanted = Math.max(now.getTime() + ttlMs, lease.expiresAt?.getTime() ?? 0);
  const until = new Date(Math.min(wanted, drainDeadlines.get(key)?.getTime() ?? Infinity));
  return { lease: extend(capacity, lease, until), renewal: "RENEWED", now };
}
