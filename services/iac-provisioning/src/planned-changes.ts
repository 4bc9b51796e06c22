import { z } from "zod";
import type { Context } from "./context.ts";
import type { PlannedChange } from "./engines/engine-event.ts";
import { type HeldRun, RunLost } from "./held-run.ts";

const BATCH = 200;
const MAX_TYPE_LENGTH = 200;

const action = z.enum(["no-op", "create", "read", "update", "delete", "forget"]);

/** Writes a plan's changes in their order, in place of those of a plan that was not finished. Throws RunLost. */
export async function recordPlannedChanges(
  { pool, client }: Context,
  { run }: HeldRun,
  changes: readonly PlannedChange[],
): Promise<void> {
  await client.plannedChange.deleteMany({ where: { runId: run.id, run: { executorEpoch: run.executorEpoch } } });
  for (let first = 0; first < changes.length; first += BATCH) {
    const batch = changes.slice(first, first + BATCH).map((change, index) => ({
      ordinal: first + index,
      address: change.address,
      resourceType: change.resourceType.slice(0, MAX_TYPE_LENGTH),
      actions: change.actions,
      reason: change.actionReason?.slice(0, MAX_TYPE_LENGTH) ?? null,
      before: change.before,
      after: change.after,
    }));
    const { rowCount } = await pool.query(INSERT, [run.id, run.executorEpoch, JSON.stringify(batch)]);
    if (rowCount === 0) throw new RunLost(run);
  }
}

/** The plan's changes as far as a receipt needs them. */
export async function readPlannedChanges({ client }: Context, { run }: HeldRun): Promise<PlannedChange[]> {
  const rows = await client.plannedChange.findMany({
    where: { runId: run.id },
    orderBy: { ordinal: "asc" },
    select: { address: true, resourceType: true, actions: true },
  });
  return rows.map((row) => ({
    ...row,
    actions: row.actions.map((name) => action.parse(name)),
    before: null,
    after: null,
  }));
}

const INSERT = `
  WITH held AS (SELECT FROM provisioning_run WHERE id = $1 AND executor_epoch = $2 FOR SHARE)
  INSERT INTO planned_change (run_id, ordinal, address, resource_type, actions, reason, before, after)
  SELECT $1, ordinal, address, "resourceType", actions, reason, before, after
  FROM held, jsonb_to_recordset($3::jsonb) AS change
    (ordinal int, address text, "resourceType" text, actions text[], reason text, before jsonb, after jsonb)`;
