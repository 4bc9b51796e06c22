import { capacityDifferences } from "@runtime-cloud/execution-capacity/capacity/capacity-differences";
import type { CapacityService } from "./capacity-service.ts";

/** The share of a pool's slots that were leased from one instant of the database to another. */
export async function utilisation(
  { aside: pool }: CapacityService,
  { poolId, size, from, to }: { poolId: string; size: number; from: Date; to: Date },
): Promise<number> {
  const { rows } = await pool.query<{ seconds: number }>(
    `SELECT coalesce(sum(
       units * extract(epoch FROM least(coalesce(ended_at, $3), $3) - greatest(granted_at, $2))), 0)::float8 AS seconds
     FROM capacity_lease WHERE pool_id = $1 AND granted_at < $3 AND coalesce(ended_at, $3) > $2`,
    [poolId, from, to],
  );
  return (rows[0]?.seconds ?? NaN) / (size * ((to.getTime() - from.getTime()) / 1_000));
}

/** Throws unless all have left, no counter is wrong, and the pool never leased more than it has. */
export async function checkLeft({ context: { client }, aside: pool }: CapacityService, size: number): Promise<void> {
  const { rows } = await pool.query<{ open: number; places: number; most: number }>(
    `SELECT
       (SELECT count(*)::int FROM capacity_lease WHERE ended_at IS NULL) AS open,
       (SELECT count(*)::int FROM queue_place) AS places,
       (SELECT max(held)::int FROM (
          SELECT sum(units) OVER (ORDER BY at, units) AS held FROM (
            SELECT granted_at AS at, units FROM capacity_lease WHERE granted_at IS NOT NULL
            UNION ALL
            SELECT ended_at, -units FROM capacity_lease WHERE granted_at IS NOT NULL
          ) AS moves
        ) AS held) AS most`,
  );
  const [found] = rows;
  if (found?.open !== 0 || found.places !== 0 || found.most > size) {
    throw new Error(`all left a pool of ${size}, and it says ${JSON.stringify(found)}`);
  }
  const differences = await capacityDifferences(client);
  if (differences.length > 0)
    throw new Error(`counters differ from leases: ${JSON.stringify(differences.slice(0, 3))}`);
}
