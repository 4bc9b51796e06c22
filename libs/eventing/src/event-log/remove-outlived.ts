import type pg from "pg";

/** What a batch did. */
export interface Removed {
  removed: number;
  /** Where the next batch starts, or undefined when nothing is left to remove. */
  next: bigint | undefined;
}

/** Rows of one statement. */
export const BATCH = 1_000;

/**
 * Removes events that were published longer ago than that, with their places in the log, from behind a sequence on. What
 * isn't published, or has no place yet, stays, however old. The log's bounds remember how far it was removed, so that a
 * reader who had got less far is told.
 */
export async function removeEvents(pool: pg.Pool, days: number, after: bigint): Promise<Removed> {
  const { rows } = await pool.query<{ removed: number; last: string | null; young: boolean | null }>(
    `WITH oldest AS MATERIALIZED (
       SELECT sequence, message_id, recorded_at FROM event_log WHERE sequence > $1::bigint ORDER BY sequence LIMIT $2
     ),
     due AS MATERIALIZED (
       SELECT oldest.sequence, message.id
       FROM oldest JOIN outbox_message message ON message.id = oldest.message_id
       WHERE message.published_at < clock_timestamp() - make_interval(days => $3)
       FOR UPDATE OF message SKIP LOCKED
     ),
     messages AS (DELETE FROM outbox_message USING due WHERE outbox_message.id = due.id),
     entries AS (
       DELETE FROM event_log USING due WHERE event_log.sequence = due.sequence RETURNING event_log.sequence
     ),
     bounds AS (
       UPDATE event_log_bounds SET removed = greatest(removed, (SELECT max(sequence) FROM entries))
       WHERE EXISTS (SELECT FROM entries)
     )
     SELECT (SELECT count(*)::int FROM entries) AS removed, max(sequence) AS last,
            bool_or(recorded_at >= clock_timestamp() - make_interval(days => $3)) AS young
     FROM oldest`,
    [after, BATCH, days],
  );
  const { removed = 0, last = null, young = true } = rows[0] ?? {};
  // Publishing comes after recording, so behind a young entry all are young.
  return { removed, next: last === null || young === true ? undefined : BigInt(last) };
}

/** Removes receipts of events that were taken in longer ago than that. */
export async function removeReceipts(pool: pg.Pool, days: number): Promise<Removed> {
  const { rowCount } = await pool.query(
    `DELETE FROM inbox_receipt WHERE (event_id, handler) IN (
       SELECT event_id, handler FROM inbox_receipt
       WHERE received_at < clock_timestamp() - make_interval(days => $1)
       ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED
     )`,
    [days, BATCH],
  );
  return whileFull(rowCount);
}

/** Removes idempotency keys that were used longer ago than that. */
export async function removeKeys(pool: pg.Pool, days: number): Promise<Removed> {
  const { rowCount } = await pool.query(
    `DELETE FROM idempotency_key WHERE (tenant_id, method, key) IN (
       SELECT tenant_id, method, key FROM idempotency_key
       WHERE created_at < clock_timestamp() - make_interval(days => $1)
       ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
     )`,
    [days, BATCH],
  );
  return whileFull(rowCount);
}

function whileFull(rowCount: number | null): Removed {
  const removed = rowCount ?? 0;
  return { removed, next: removed === BATCH ? 0n : undefined };
}
