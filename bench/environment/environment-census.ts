import { isDeepStrictEqual } from "node:util";
import type pg from "pg";
import type { ObservedEnvironments } from "./observed-environments.ts";
import { VERSION } from "./web-component.ts";

const CENSUS = `
  SELECT
    (SELECT count(*)::int FROM inventory WHERE id = ANY($1::text[]) AND state = 'FRESH' AND health = 'HEALTHY'
       AND observation_failure IS NULL AND version = 1 AND revision = 0) AS well,
    (SELECT count(*)::int FROM component WHERE inventory_id = ANY($1::text[]) AND observer = 'http'
       AND health = 'HEALTHY' AND component_version = $2) AS answering,
    (SELECT count(*)::int FROM component WHERE inventory_id = ANY($1::text[]) AND observer = 'push'
       AND health = 'HEALTHY' AND component_version = $2 AND replicas_ready = replicas_desired) AS reported,
    (SELECT count(*)::int FROM observer_report WHERE inventory_id = ANY($1::text[]) AND failure IS NOT NULL) AS failures,
    (SELECT count(*)::int FROM inventory_change WHERE inventory_id = ANY($1::text[])) AS changes,
    (SELECT count(*)::int FROM finding WHERE environment_id = ANY($1::text[])) AS findings,
    (SELECT count(*)::int FROM outbox_message WHERE subject = ANY($1::text[])) AS announced`;

/** Throws unless each of them is fresh and well, as it was added, and nothing is recorded or announced about it. */
export async function checkWell(aside: pg.Pool, { ids: { length: count }, ids }: ObservedEnvironments): Promise<void> {
  const { rows } = await aside.query(CENSUS, [ids, VERSION]);
  const each = { well: count, answering: count, reported: count };
  const expected = { ...each, failures: 0, changes: 0, findings: 0, announced: 0 };
  if (isDeepStrictEqual({ ...rows[0] }, expected)) return;
  throw new Error(`of ${JSON.stringify(expected)} the database says ${JSON.stringify(rows[0])}`);
}
