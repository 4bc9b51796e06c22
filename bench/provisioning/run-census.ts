import { isDeepStrictEqual } from "node:util";
import type pg from "pg";

const CENSUS = `
  SELECT
    (SELECT count(*)::int FROM provisioning_run WHERE id = ANY($1::uuid[]) AND state = 'APPLIED') AS applied,
    (SELECT count(*)::int FROM receipt_entry WHERE run_id = ANY($1::uuid[]) AND outcome = 'APPLIED') AS resources,
    (SELECT count(*)::int FROM outbox_message
     WHERE subject = ANY($1::text[]) AND topic LIKE '%.provisioning-applied') AS announced,
    (SELECT count(*)::int FROM engine_state state JOIN engine_state_version version
       USING (tenant_id, environment_id, kind, lineage, serial)
     WHERE version.run_id = ANY($1::text[]) AND state.lock_id IS NULL) AS states`;

/** Throws unless each run was applied with so many resources, told of once, and left its state behind and unlocked. */
export async function checkApplied(aside: pg.Pool, runIds: readonly string[], resourcesEach: number): Promise<void> {
  const { rows } = await aside.query(CENSUS, [runIds]);
  const runs = runIds.length;
  const expected = { applied: runs, resources: runs * resourcesEach, announced: runs, states: runs };
  if (isDeepStrictEqual({ ...rows[0] }, expected)) return;
  throw new Error(`of ${JSON.stringify(expected)} the database says ${JSON.stringify(rows[0])}`);
}
