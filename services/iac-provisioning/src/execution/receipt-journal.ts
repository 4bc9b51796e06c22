import type { Context } from "../context.ts";
import { patiently } from "./database-patience.ts";
import type { EngineEvent, PlannedChange } from "../engines/engine-event.ts";
import { openReceipt, type Receipt, type ReceiptEntry } from "../engines/receipt.ts";
import { type HeldRun, RunLost } from "./held-run.ts";

/** Entries in one statement. */
const BATCH = 1_000;
/** So many entries may wait for the write that is under way; then the engine's next word waits too. */
const MAX_WAITING = 256;
/** As long as the column is. */
const MAX_TYPE_LENGTH = 200;

/**
 * What an apply has done so far, line by line in the database. What is heard while a write is under way goes in with
 * the next one, so that a database never holds up an engine, and a killed executor loses what its last writes held.
 */
export interface ReceiptJournal {
  /** Throws RunLost, now or at a later call. */
  take(event: EngineEvent): Promise<void>;
  /** All was applied. Throws RunLost. */
  complete(): Promise<void>;
  /** When it returns, the receipt survives this process. Throws RunLost. */
  flush(): Promise<void>;
  receipt(): Receipt;
}

/** Begins the receipt of an apply with every planned change, none of them attempted. Throws RunLost. */
export async function openReceiptJournal(
  context: Context,
  held: HeldRun,
  changes: readonly PlannedChange[],
): Promise<ReceiptJournal> {
  const receipt = openReceipt(changes);
  const waiting = new Set<number>();
  let writing: Promise<void> | undefined;
  let failure: { error: unknown } | undefined;

  async function writeAll(): Promise<void> {
    while (waiting.size > 0) {
      const places = [...waiting].slice(0, BATCH);
      for (const place of places) waiting.delete(place);
      const rows = places.flatMap((place) => {
        const entry = receipt.entry(place);
        return entry ? [row(entry, place)] : [];
      });
      await patiently(context, () => save(context, held, rows));
    }
  }

  function write(): Promise<void> {
    writing ??= writeAll()
      .catch((error: unknown) => void (failure = { error }))
      .finally(() => {
        writing = undefined;
        if (waiting.size > 0 && !failure) void write();
      });
    return writing;
  }

  async function flush(): Promise<void> {
    while (waiting.size > 0 && !failure) await write();
    await writing;
    if (failure) throw failure.error;
  }

  for (const place of changes.keys()) waiting.add(place);
  await flush();
  return {
    flush,
    receipt: () => receipt.entries(),
    async take(event) {
      if (failure) throw failure.error;
      const place = receipt.take(event);
      if (place === undefined) return;
      waiting.add(place);
      const written = write();
      if (waiting.size > MAX_WAITING) await written;
    },
    async complete() {
      for (const place of receipt.complete()) waiting.add(place);
      await flush();
    },
  };
}

async function save({ pool }: Context, { run }: HeldRun, rows: readonly ReceiptRow[]): Promise<void> {
  const { rowCount } = await pool.query(UPSERT, [run.id, run.executorEpoch, JSON.stringify(rows)]);
  if (rowCount === 0) throw new RunLost(run);
}

function row(entry: ReceiptEntry, ordinal: number) {
  const { address, outcome, actions, id, diagnostic, durationMs } = entry;
  return {
    ordinal,
    address,
    resourceType: entry.resourceType.slice(0, MAX_TYPE_LENGTH),
    outcome,
    actions,
    resourceId: id ?? null,
    diagnostic: diagnostic ? [diagnostic.summary, diagnostic.detail].filter((part) => part !== "").join(": ") : null,
    durationMs,
  };
}

type ReceiptRow = ReturnType<typeof row>;

/** Also an executor that was given up is heard: what its engine still does is done, whoever looks into it. */
const UPSERT = `
  WITH held AS (
    SELECT FROM provisioning_run
    WHERE id = $1 AND executor_epoch = $2 AND state IN ('APPLYING', 'CANCELLING', 'INDETERMINATE')
    FOR SHARE
  )
  INSERT INTO receipt_entry
    (run_id, ordinal, address, resource_type, outcome, actions, resource_id, diagnostic, duration_ms)
  SELECT $1, ordinal, address, "resourceType", outcome, actions, "resourceId", diagnostic, "durationMs"
  FROM held, jsonb_to_recordset($3::jsonb) AS entry
    (ordinal int, address text, "resourceType" text, outcome "ResourceOutcome", actions text[], "resourceId" text,
     diagnostic text, "durationMs" int)
  ON CONFLICT (run_id, ordinal) DO UPDATE
  SET outcome = excluded.outcome, resource_id = excluded.resource_id, diagnostic = excluded.diagnostic,
      duration_ms = excluded.duration_ms`;
