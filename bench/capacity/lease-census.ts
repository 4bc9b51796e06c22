import { isDeepStrictEqual } from "node:util";

import { capacityDifferences } from "@runtime-cloud/execution-capacity/capacity/capacity-differences";
import type { Context } from "@runtime-cloud/execution-capacity/context";
import type pg from "pg";
import type { LeasePath } from "./lease-path.ts";

interface Census {
  live: number;
  released: number;
  /** Holders with two live leases. */
  doubled: number;
  toldGranted: number;
  toldReleased: number;
}

const CENSUS = `
  SELECT lease.*, outbox.* FROM (
    SELECT (count(*) FILTER (WHERE state IN ('WAITING', 'ACTIVE')))::int AS live,
           (count(*) FILTER (WHERE state = 'RELEASED'))::int AS released,
           (SELECT count(*)::int FROM (
              SELECT FROM capacity_lease WHERE state IN ('WAITING', 'ACTIVE')
              GROUP BY tenant_id, holder_kind, holder_id, resource HAVING count(*) > 1
            ) AS holder) AS doubled
    FROM capacity_lease
  ) AS lease, (
    SELECT (count(*) FILTER (WHERE topic LIKE '%.capacity-lease-granted'))::int AS "toldGranted",
           (count(*) FILTER (WHERE topic LIKE '%.capacity-lease-released'))::int AS "toldReleased"
    FROM outbox_message
  ) AS outbox`;

/**
 * A path's check of our database: what was granted was released and told, each once, since the last check; nobody holds
 * anything; and the counters agree with the leases.
 */
export async function leaseCensus({ client, pool }: Pick<Context, "client" | "pool">): Promise<LeasePath["check"]> {
  let before = await census(pool);
  return async (pairs) => {
    const differences = await capacityDifferences(client);
    if (differences.length > 0) throw new Error(`counters differ from the leases: ${JSON.stringify(differences)}`);
    const now = await census(pool);
    const expected: Census = {
      live: 0,
      doubled: 0,
      released: before.released + pairs,
      toldGranted: before.toldGranted + pairs,
      toldReleased: before.toldReleased + pairs,
    };
    before = now;
    if (isDeepStrictEqual({ ...now }, expected)) return;
    throw new Error(`after ${pairs} pairs there are ${JSON.stringify(now)}, not ${JSON.stringify(expected)}`);
  };
}

async function census(pool: pg.Pool): Promise<Census> {
  const { rows } = await pool.query<Census>(CENSUS);
  if (rows[0] === undefined) throw new Error("the census has no row");
  return rows[0];
}
