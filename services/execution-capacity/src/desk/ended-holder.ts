import type { ReleaseReason } from "../../generated/prisma/client.ts";
import { keyOf } from "../capacity/capacity.ts";
import { endLease, isOpen } from "../capacity/capacity-lease.ts";
import type { Holder } from "../capacity/capacity-lock.ts";
import type { ServiceUnit, Told } from "../context.ts";
import { lockCapacity, settleUnit } from "../capacity/unit-capacity.ts";

/**
 * What ends holds nothing: gives back every lease of the holder, withdraws those it waits for, and remembers it, so that
 * an acquire which comes later is refused. Told again it finds nothing to do.
 */
export async function endHolder(told: Told, unit: ServiceUnit, holder: Holder, reason: ReleaseReason): Promise<void> {
  const { tenantId, holderKind, holderId } = holder;
  const capacity = await lockCapacity(unit, { holders: [holder], scopes: [{ tenantId, projectId: "" }] });
  const { now } = capacity;
  await unit.tx.endedHolder.createMany({ data: { ...holder, endedAt: now }, skipDuplicates: true });
  const own = [...capacity.leases.values()].filter(
    (lease) => lease.tenantId === tenantId && lease.holderKind === holderKind && lease.holderId === holderId,
  );
  for (const lease of own.filter(isOpen)) endLease(capacity, lease, { type: "release", at: now, reason }, unit.cause);
  // Whoever remembers the holder as one that hasn't ended finds that out by its tenant's revision.
  capacity.changes.scopes.add(keyOf(tenantId, ""));
  await settleUnit(told, unit, capacity);
}
