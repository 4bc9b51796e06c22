import { z } from "zod";
import type { Context } from "../context.ts";
import type { PlannedChange } from "../engines/engine-event.ts";
import { wellFormed } from "../engines/redaction/plain-text.ts";
import { type HeldRun, RunLost } from "../execution/held-run.ts";

/** Rows in one statement. Their JSON has at most BATCH_BYTES, unless a single one is larger (see shown-change.ts). */
const BATCH_ROWS = 200;
const BATCH_BYTES = 1024 * 1024;
/** Rows in one reading. */
const PAGE = 5_000;
/** As long as the columns are. */
const MAX_TYPE_LENGTH = 200;
const MAX_DEPOSED_LENGTH = 64;

/** Writes a plan's changes in their order, in place of those of a plan that was not finished. Throws RunLost. */
export async function recordPlannedChanges(
  { pool, client }: Context,
  { run }: HeldRun,
  changes: readonly PlannedChange[],
): Promise<void> {
  await client.plannedChange.deleteMany({ where: { runId: run.id, run: { executorEpoch: run.executorEpoch } } });
  for (const batch of batches(changes)) {
    const { rowCount } = await pool.query(INSERT, [run.id, run.executorEpoch, batch]);
    if (rowCount === 0) throw new RunLost(run);
  }
}

/** The plan's changes as far as a receipt needs them: their attributes stay where they are. */
export async function readPlannedChanges({ pool }: Context, { run }: Pick<HeldRun, "run">): Promise<PlannedChange[]> {
  const changes: PlannedChange[] = [];
  for (;;) {
    const { rows } = await pool.query(SELECT, [run.id, changes.length, PAGE]);
    for (const row of rows) {
      const { deposed, ...change } = plannedRow.parse(row);
      changes.push({ ...change, before: null, after: null, ...(deposed === null ? {} : { deposed }) });
    }
    if (rows.length < PAGE) return changes;
  }
}

/** Texts of JSON arrays, each small enough for one statement. */
function* batches(changes: readonly PlannedChange[]): Generator<string> {
  let rows: string[] = [];
  let size = 0;
  for (const [ordinal, change] of changes.entries()) {
    const row = JSON.stringify(rowOf(change, ordinal));
    if (rows.length > 0 && (rows.length === BATCH_ROWS || size + row.length > BATCH_BYTES)) {
      yield `[${rows.join(",")}]`;
      rows = [];
      size = 0;
    }
    rows.push(row);
    size += row.length;
  }
  if (rows.length > 0) yield `[${rows.join(",")}]`;
}

function rowOf(change: PlannedChange, ordinal: number) {
  const { address, resourceType, actions, actionReason, before, after, previousAddress, importId, deposed } = change;
  return {
    ordinal,
    address,
    resourceType: resourceType.slice(0, MAX_TYPE_LENGTH),
    actions,
    reason: actionReason === undefined ? null : wellFormed(actionReason.slice(0, MAX_TYPE_LENGTH)),
    before,
    after,
    previousAddress: previousAddress ?? null,
    importId: importId ?? null,
    deposed: deposed?.slice(0, MAX_DEPOSED_LENGTH) ?? null,
  };
}

const plannedRow = z.object({
  address: z.string(),
  resourceType: z.string(),
  actions: z.array(z.enum(["no-op", "create", "read", "update", "delete", "forget"])),
  deposed: z.string().nullable(),
});

const INSERT = `
  WITH held AS (SELECT FROM provisioning_run WHERE id = $1 AND executor_epoch = $2 FOR SHARE)
  INSERT INTO planned_change
    (run_id, ordinal, address, resource_type, actions, reason, before, after, previous_address, import_id, deposed)
  SELECT $1, ordinal, address, "resourceType", actions, reason, before, after, "previousAddress", "importId", deposed
  FROM held, jsonb_to_recordset($3::jsonb) AS change
    (ordinal int, address text, "resourceType" text, actions text[], reason text, before jsonb, after jsonb,
     "previousAddress" text, "importId" text, deposed text)`;

const SELECT = `
  SELECT address, resource_type AS "resourceType", actions, deposed FROM planned_change
  WHERE run_id = $1 AND ordinal >= $2 ORDER BY ordinal LIMIT $3`;
