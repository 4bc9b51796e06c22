import type { LeaseEvent } from "@runtime-cloud/state-machines/capacity-lease";
import type { CapacityLease } from "../generated/prisma/client.ts";
import { advanceLease, isOverdue, ownLease } from "./capacity-lease.ts";
import type { ServiceUnit, Wakes } from "./context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { findPool } from "./worker-pool.ts";

export interface Renewal {
  result: "RENEWED" | "ALREADY_ENDED" | "STALE_TOKEN";
  lease: CapacityLease;
  /** The database's instant, by which the renewal was decided. */
  now: Date;
}

/** Extends a live lease under its own lock alone: nothing is granted or given back. It never revives one. */
export async function renew(
  wakes: Wakes,
  unit: ServiceUnit,
  { tenantId, id, fencingToken, ttlMs }: { tenantId: string; id: string; fencingToken: bigint; ttlMs: number },
): Promise<Renewal> {
  await unit.tx.$queryRaw`
    SELECT FROM capacity_lease WHERE id = ${id}::uuid AND tenant_id = ${tenantId} FOR NO KEY UPDATE`;
  const now = await transactionNow(unit.tx);
  const lease = await ownLease(unit.tx, tenantId, id);
  if (lease.fencingToken !== null && lease.fencingToken !== fencingToken) return { result: "STALE_TOKEN", lease, now };
  if (lease.state !== "WAITING" && (lease.state !== "ACTIVE" || isOverdue(lease, now))) {
    return { result: "ALREADY_ENDED", lease, now };
  }
  const until = await extended(unit, lease, now.getTime() + ttlMs);
  const renewed = await advanceLease(unit, lease, { type: "renew", at: now, until } satisfies LeaseEvent);
  unit.after(() => wakes.arm("lease-expiry", until, { pool: lease.poolId }));
  return { result: "RENEWED", lease: renewed, now };
}

/** Never earlier than before, except that in a pool that drains no lease outlives the deadline. */
async function extended({ tx }: ServiceUnit, lease: CapacityLease, wantedMs: number): Promise<Date> {
  const pool = await findPool(tx, { tenantId: lease.poolTenantId, id: lease.poolId });
  const cap = (pool?.state === "DRAINING" && pool.drainDeadline?.getTime()) || Infinity;
  return new Date(Math.min(Math.max(wantedMs, lease.expiresAt?.getTime() ?? 0), cap));
}
