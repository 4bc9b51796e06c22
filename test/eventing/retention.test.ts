import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { logBounds } from "@runtime-cloud/eventing/event-log/event-log";
import { sequencePage } from "@runtime-cloud/eventing/event-log/event-sequencer";
import { type KeptDays, removalsOf, removeAll, startRetention } from "@runtime-cloud/eventing/event-log/retention";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { Registry } from "prom-client";
import { insertEvents } from "./outbox-rows.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

const days: KeptDays = { EVENT_RETENTION_DAYS: 7, INBOX_RECEIPT_RETENTION_DAYS: 45, IDEMPOTENCY_RETENTION_DAYS: 3 };

let database: ServiceDatabase;

beforeAll(async () => {
  database = await openServiceDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  await database.pool.query("TRUNCATE outbox_message, unsequenced_event, event_log, inbox_receipt, idempotency_key");
});

/** Announces events that were recorded, and published, so many days ago. */
async function aged(count: number, ageDays: number): Promise<string[]> {
  const ids = await insertEvents(
    database.pool,
    Array.from({ length: count }, () => ({})),
  );
  while ((await sequencePage(database.pool)) > 0);
  const at = "clock_timestamp() - make_interval(days => $2)";
  await database.pool.query(`UPDATE outbox_message SET published_at = ${at} WHERE id = ANY($1)`, [ids, ageDays]);
  await database.pool.query(`UPDATE event_log SET recorded_at = ${at} WHERE message_id = ANY($1)`, [ids, ageDays]);
  return ids;
}

async function remove(table: string, signal = new AbortController().signal): Promise<number> {
  const [, removeBatch] = removalsOf(database.pool, days).find(([name]) => name === table) ?? [];
  if (!removeBatch) throw new Error(`nothing removes from ${table}`);
  return removeAll(removeBatch, signal);
}

async function kept(table: string, column: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ key: string }>(`SELECT ${column}::text AS key FROM ${table} ORDER BY 1`);
  return rows.map(({ key }) => key);
}

test("removes events that were published longer ago than their days, with their places, and remembers how far", async () => {
  await aged(3, 8);
  const { newest } = await logBounds(database.pool);
  const young = await aged(2, 6);
  expect(await remove("outbox_message")).toBe(3);
  expect(await kept("outbox_message", "id")).toEqual([...young].sort());
  expect(await kept("event_log", "message_id")).toEqual([...young].sort());
  expect((await logBounds(database.pool)).removed).toBe(newest);
  expect(await remove("outbox_message")).toBe(0);
});

test("keeps what isn't published, or has no place in the log, however old; and removes around it", async () => {
  const [, waiting] = await aged(3, 400);
  await database.pool.query("UPDATE outbox_message SET published_at = NULL WHERE id = $1", [waiting]);
  const [unsequenced] = await insertEvents(database.pool, [{}]);
  await database.pool.query(
    "UPDATE outbox_message SET published_at = now() - interval '400 days', created_at = now() - interval '400 days' WHERE id = $1",
    [unsequenced],
  );
  expect(await remove("outbox_message")).toBe(2);
  expect(await kept("outbox_message", "id")).toEqual([waiting, unsequenced].sort());
  expect(await kept("event_log", "message_id")).toEqual([waiting]);
});

test("works in bounded batches, beside another process, and removes each row once", async () => {
  await aged(2_500, 8);
  const sizes: number[] = [];
  const [, removeBatch] = removalsOf(database.pool, days)[0] ?? [];
  if (!removeBatch) throw new Error("there are events to remove");
  const counted = async (after: bigint) => {
    const batch = await removeBatch(after);
    sizes.push(batch.removed);
    return batch;
  };
  const { signal } = new AbortController();
  const [mine, theirs] = await Promise.all([removeAll(counted, signal), removeAll(counted, signal)]);
  expect(mine + theirs).toBe(2_500);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
  expect(await kept("event_log", "sequence")).toEqual([]);
});

test("an event whose row the relay holds is left for the next sweep", async () => {
  const [held] = await aged(2, 8);
  const relay = await database.pool.connect();
  await relay.query("BEGIN");
  await relay.query("SELECT FROM outbox_message WHERE id = $1 FOR UPDATE", [held]);
  expect(await remove("outbox_message")).toBe(1);
  await relay.query("ROLLBACK");
  relay.release();
  expect(await remove("outbox_message")).toBe(1);
});

test("numbers go on after everything was removed", async () => {
  await aged(2, 8);
  const { newest } = await logBounds(database.pool);
  await remove("outbox_message");
  await aged(1, 0);
  expect(await kept("event_log", "sequence")).toEqual([String(newest + 1n)]);
});

test("removes receipts and idempotency keys past their days, and no younger ones", async () => {
  const [old, young] = [uuidv7(), uuidv7()];
  await database.pool.query(
    `INSERT INTO inbox_receipt (event_id, handler, received_at)
     VALUES ($1, 'H', now() - interval '46 days'), ($2, 'H', now() - interval '44 days')`,
    [old, young],
  );
  await database.pool.query(
    `INSERT INTO idempotency_key (tenant_id, method, key, request_hash, response, created_at)
     VALUES ('t', 'm', 'old', '', '', now() - interval '4 days'), ('t', 'm', 'young', '', '', now() - interval '2 days')`,
  );
  expect(await remove("inbox_receipt")).toBe(1);
  expect(await kept("inbox_receipt", "event_id")).toEqual([young]);
  expect(await remove("idempotency_key")).toBe(1);
  expect(await kept("idempotency_key", "key")).toEqual(["young"]);
});

test("the sweep counts what it removed, by table", async () => {
  await aged(2, 8);
  const registry = new Registry();
  const retention = startRetention({ pool: database.pool, settings: days, logger: silentLogger(), registry });
  const counted = await until("the first sweep", 10_000, async () => {
    const metrics = await registry.metrics();
    return metrics.includes('table="idempotency_key"') ? metrics : undefined;
  });
  await retention.stop();
  expect(counted).toContain('retention_removed_rows_total{table="outbox_message"} 2');
});
