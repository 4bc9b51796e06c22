import type pg from "pg";

/** As ours, for a peer's database. */
export async function createReceipts(pool: pg.Pool): Promise<void> {
  await pool.query(
    `CREATE TABLE inbox_receipt (
       event_id uuid NOT NULL,
       handler varchar(100) NOT NULL,
       received_at timestamptz(3) NOT NULL DEFAULT now(),
       PRIMARY KEY (event_id, handler)
     )`,
  );
  await pool.query("CREATE INDEX ON inbox_receipt (received_at)");
}

/** Throws unless each of these events has its receipt, and there are `total` receipts in all. */
export async function checkReceipts(pool: pg.Pool, eventIds: readonly string[], total: number): Promise<void> {
  const { rows } = await pool.query<{ all: number; ours: number }>(
    `SELECT count(*)::int AS all, (count(*) FILTER (WHERE event_id = ANY($1)))::int AS ours FROM inbox_receipt`,
    [eventIds],
  );
  if (rows[0]?.ours === eventIds.length && rows[0].all === total) return;
  throw new Error(`receipts are ${JSON.stringify(rows[0])}, and should be ${eventIds.length} of ${total} in all`);
}
