import { parseCloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import pg from "pg";
import { Ledger } from "./ledger.ts";
import { checkReceipts, createReceipts } from "./receipts.ts";

/** What a queue in PostgreSQL has around it: a sender's connections, and a handler that writes receipts as ours does. */
export interface Peer {
  readonly pool: pg.Pool;
  readonly ledger: Ledger;
  /**
   * Takes in what the queue hands over at once. Their receipts are one statement, committed before it answers: the
   * least that a handler can do.
   */
  handle(envelopes: readonly unknown[]): Promise<void>;
  /** Throws unless just these events were handled since the ledger was cleared. */
  check(eventIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

const HANDLER = "Note";

/** `connections`: at least as many as the queue has handlers at work. */
export async function openPeer(databaseUrl: string, connections: number): Promise<Peer> {
  const ledger = new Ledger();
  const pool = new pg.Pool({ connectionString: databaseUrl, max: connections });
  pool.on("error", (error) => ledger.wrong(error.message));
  await createReceipts(pool);
  let receiptsSoFar = 0;

  return {
    pool,
    ledger,
    async handle(envelopes) {
      const ids = envelopes.map((envelope) => parseCloudEvent(envelope).id);
      for (const id of ids) ledger.started(id);
      const { rowCount } = await pool.query({
        name: "receipts",
        text: `INSERT INTO inbox_receipt (event_id, handler) SELECT unnest($1::uuid[]), $2 ON CONFLICT DO NOTHING`,
        values: [ids, HANDLER],
      });
      if (rowCount !== ids.length) ledger.wrong("a delivery was a duplicate");
      for (let count = 0; count < ids.length; count += 1) ledger.done();
    },
    async check(eventIds) {
      ledger.check(eventIds);
      receiptsSoFar += eventIds.length;
      await checkReceipts(pool, eventIds, receiptsSoFar);
    },
    close: () => pool.end(),
  };
}
