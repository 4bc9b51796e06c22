import type { CapacityLease } from "../../generated/prisma/client.ts";
import { type Capacity, keyOf } from "./capacity.ts";
import { type Claim, openCapacity } from "./capacity-lock.ts";
import type { ServiceUnit, Told } from "../context.ts";
import { queryOf } from "./query.ts";
import { endOverdue, settle } from "../desk/settle.ts";
import { tell } from "../desk/tell.ts";

/** Takes the locks of a claim in a unit's transaction. */
export function lockCapacity({ tx, newId, at }: ServiceUnit, claim: Claim): Promise<Capacity> {
  return openCapacity({ query: queryOf(tx), newId, at }, claim);
}

/**
 * Ends a unit that has changed pools or quotas under the locks of `claim`: reads anew, and grants what has become free.
 */
export async function settleClaim(told: Told, unit: ServiceUnit, claim: Claim): Promise<void> {
  const capacity = await lockCapacity(unit, claim);
  capacity.stirred = true;
  for (const { tenantId } of claim.scopes ?? []) capacity.changes.scopes.add(keyOf(tenantId, ""));
  endOverdue(capacity, unit.cause);
  await settleUnit(told, unit, capacity);
}

/** Ends a unit that has changed leases: grants what has become free, and writes it all. Gives the leases that changed. */
export async function settleUnit(told: Told, unit: ServiceUnit, capacity: Capacity): Promise<CapacityLease[]> {
  await settle(capacity, unit.cause);
  if (capacity.announces) unit.announces();
  unit.after(() => tell(told, capacity));
  return [...capacity.told.values()];
}
