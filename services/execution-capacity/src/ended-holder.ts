import type { ReleaseReason } from "../generated/prisma/client.ts";
import { endLease } from "./capacity-lease.ts";
import { lockCapacity } from "./capacity-lock.ts";
import type { ServiceUnit, Tx, Wakes } from "./context.ts";
import { settle } from "./settle.ts";

export interface Holder {
  tenantId: string;
  /** For example `Attempt`. */
  holderKind: string;
  holderId: string;
}

/**
 * What ends holds nothing: gives back every lease of the holder, withdraws those it waits for, and remembers it, so that
 * an acquire which comes later is refused. Told again it finds nothing to do.
 */
export async function endHolder(
  context: Wakes,
  unit: ServiceUnit,
  holder: Holder,
  reason: ReleaseReason,
): Promise<void> {
  const { tenantId } = holder;
  const pools = (await openLeases(unit.tx, holder)).map((lease) => ({
    tenantId: lease.poolTenantId,
    id: lease.poolId,
  }));
  const capacity = await lockCapacity(context, unit, { scopes: [{ tenantId, projectId: "" }], pools });
  await unit.tx.endedHolder.createMany({ data: { ...holder, endedAt: capacity.now }, skipDuplicates: true });
  for (const lease of await openLeases(unit.tx, holder)) {
    await endLease(capacity, lease, { type: "release", at: capacity.now, reason });
  }
  await settle(capacity);
}

function openLeases(tx: Tx, holder: Holder) {
  return tx.capacityLease.findMany({
    where: { ...holder, state: { in: ["WAITING", "ACTIVE"] } },
    orderBy: { id: "asc" },
  });
}
