import type { Context } from "./context.ts";
import type { EngineEvent, PlannedChange } from "./engines/engine-event.ts";
import { foldReceipt, plannedReceipt, type Receipt, type ReceiptEntry } from "./engines/receipt.ts";
import { type HeldRun, RunLost } from "./held-run.ts";

const BATCH = 500;

/** What an apply has done so far, in the database before anything is made of it. */
export interface ReceiptJournal {
  /** Writes what the event changes; when it returns, the receipt survives this process. Throws RunLost. */
  take(event: EngineEvent): Promise<void>;
  receipt(): Receipt;
}

/** Begins the receipt of an apply with every planned change, none of them attempted. */
export async function openReceiptJournal(
  context: Context,
  held: HeldRun,
  changes: readonly PlannedChange[],
): Promise<ReceiptJournal> {
  let receipt = plannedReceipt(changes);
  for (let first = 0; first < receipt.length; first += BATCH) {
    await save(
      context,
      held,
      receipt.slice(first, first + BATCH).map((entry, index) => row(entry, first + index)),
    );
  }
  return {
    receipt: () => receipt,
    async take(event) {
      const before = receipt;
      receipt = foldReceipt(before, event);
      const changed = receipt.flatMap((entry, ordinal) => (entry === before[ordinal] ? [] : [row(entry, ordinal)]));
      await save(context, held, changed);
    },
  };
}

async function save({ pool }: Context, { run }: HeldRun, rows: readonly ReceiptRow[]): Promise<void> {
  if (rows.length === 0) return;
  const { rowCount } = await pool.query(UPSERT, [run.id, run.executorEpoch, JSON.stringify(rows)]);
  if (rowCount === 0) throw new RunLost(run);
}

function row({ address, outcome, actions, id, diagnostic, durationMs }: ReceiptEntry, ordinal: number) {
  const text = diagnostic && [diagnostic.summary, diagnostic.detail].filter((part) => part !== "").join(": ");
  return { ordinal, address, outcome, actions, resourceId: id ?? null, diagnostic: text ?? null, durationMs };
}

type ReceiptRow = ReturnType<typeof row>;

const UPSERT = `
  WITH held AS (SELECT FROM provisioning_run WHERE id = $1 AND executor_epoch = $2 FOR SHARE)
  INSERT INTO receipt_entry (run_id, ordinal, address, outcome, actions, resource_id, diagnostic, duration_ms)
  SELECT $1, ordinal, address, outcome, actions, "resourceId", diagnostic, "durationMs"
  FROM held, jsonb_to_recordset($3::jsonb) AS entry
    (ordinal int, address text, outcome "ResourceOutcome", actions text[], "resourceId" text, diagnostic text,
     "durationMs" int)
  ON CONFLICT (run_id, ordinal) DO UPDATE
  SET outcome = excluded.outcome, resource_id = excluded.resource_id, diagnostic = excluded.diagnostic,
      duration_ms = excluded.duration_ms`;
