import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { DeadlineResult } from "@runtime-cloud/eventing/deadlines";
import type { Context } from "../context.ts";
import { DUE_BATCH, endEach } from "../due.ts";
import { advanceInventory, lockEnvironment } from "../inventory/inventory.ts";
import type { Place } from "../observers/observer.ts";

export const STALENESS = "staleness";

/** Makes those environments STALE that nobody has seen for too long. */
export async function endFreshness(context: Context): Promise<DeadlineResult> {
  const due = await context.client.$queryRaw<Place[]>`
    SELECT id, tenant_id AS "tenantId" FROM inventory
    WHERE state = 'FRESH' AND stale_at <= statement_timestamp() ORDER BY stale_at LIMIT ${DUE_BATCH}`;
  return endEach(context, STALENESS, due, async (unit, place) => {
    const inventory = await lockEnvironment(unit.tx, place);
    const at = await transactionNow(unit.tx);
    if (inventory.state !== "FRESH" || !inventory.staleAt || inventory.staleAt > at) return false;
    await advanceInventory(unit, inventory, { type: "expire", at });
    return true;
  });
}
