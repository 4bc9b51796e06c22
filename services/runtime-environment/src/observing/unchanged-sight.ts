import { secondsAfter } from "@runtime-cloud/eventing/database-clock";
import type { Inventory } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import type { Sight } from "./look.ts";
import { isOutdated } from "./record-sight.ts";
import { driftSeen } from "../findings/record-drift.ts";
import { movedBy } from "../inventory/what-moved.ts";
import { type Report, reportOf, takeIn } from "../inventory/world.ts";
import type { KnownWorld } from "../inventory/world-rows.ts";
import { isAsWritten } from "../inventory/write-world.ts";

/**
 * Takes in a sight that moves nothing, as most don't, by one statement and without holding a lock meanwhile: the times,
 * if the environment is still at the revision that it was compared with. False when it isn't, or when there is more to
 * do about the sight: `recordSight` is for that. `known` must have been read after the `inventory`.
 */
export async function takeInUnchanged(
  { client, arm }: Pick<Context, "client" | "arm">,
  inventory: Inventory,
  known: KnownWorld,
  sight: Sight,
): Promise<boolean> {
  const before = reportOf(known, sight.observer);
  if (!before || !movesNothing(inventory, { known, before, sight })) return false;
  const { id, revision } = inventory;
  const { observer, at } = sight;
  const staleAt = secondsAfter(at, inventory.staleAfterSeconds);
  // The environment's row is locked before the report's, as everybody does.
  const [row] = await client.$queryRaw<{ staleAt: Date }[]>`
    WITH unmoved AS MATERIALIZED (
      SELECT id FROM inventory
      WHERE id = ${id} AND revision = ${revision} AND state = 'FRESH'
        AND NOT EXISTS (SELECT FROM finding WHERE environment_id = inventory.id AND state <> 'RESOLVED')
      FOR UPDATE
    ), reported AS (
      UPDATE observer_report SET observed_at = ${at} FROM unmoved
      WHERE inventory_id = unmoved.id AND observer = ${observer} AND observed_at = ${before.observedAt}
        AND failures = 0 AND failure IS NOT DISTINCT FROM ${before.failure}
      RETURNING inventory_id
    )
    UPDATE inventory SET observed_at = greatest(observed_at, ${at}), stale_at = greatest(stale_at, ${staleAt})
    FROM reported WHERE id = reported.inventory_id
    RETURNING stale_at AS "staleAt"`;
  if (!row) return false;
  void arm("staleness", row.staleAt);
  return true;
}

function movesNothing(inventory: Inventory, { known, before, sight }: Compared): boolean {
  if (!("observation" in sight) || inventory.state !== "FRESH" || known.unresolved > 0) return false;
  if (before.failures > 0 || isOutdated(known, sight)) return false;
  const { observer, observation } = sight;
  const world = takeIn(known, observer, observation);
  if (reportOf(world, observer)?.failure !== before.failure || !isAsWritten(known, world, observer)) return false;
  const drift = driftSeen({ environmentId: inventory.id, known, world, findings: [], observer, observation });
  return drift.sightings.length === 0 && movedBy(inventory, { known, world, sight }, 0).moves.length === 0;
}

interface Compared {
  known: KnownWorld;
  /** How the observer has fared. */
  before: Report;
  sight: Sight;
}
