import { setTimeout as wait } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { listenTo } from "@runtime-cloud/eventing/event-log/channel-listener";
import { logBounds, readLog } from "@runtime-cloud/eventing/event-log/event-log";
import { LOG_CHANNEL, sequencePage, startSequencer } from "@runtime-cloud/eventing/event-log/event-sequencer";
import { watchLog } from "@runtime-cloud/eventing/event-log/event-watch";
import { type LogTip, logTip } from "@runtime-cloud/eventing/event-log/log-tip";
import { until } from "@runtime-cloud/local-servers/until";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import fc from "fast-check";
import pg from "pg";
import { insertEvents } from "./outbox-rows.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

const logger = silentLogger();

let database: ServiceDatabase;
/** What a test opened, closed after it in the opposite order, however it ended. */
const opened: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  database = await openServiceDatabase();
});
afterAll(() => database.close());
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function connection(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  opened.push(() => client.end());
  return client;
}

/** The log as a process of its own has it: a sequencer and what its watchers wait on. */
function replica(): LogTip {
  const { pool } = database;
  const tip = logTip(pool, logger);
  const sequencer = startSequencer({ pool, logger });
  const listener = listenTo(pool, { [LOG_CHANNEL]: tip.heard }, logger);
  opened.push(() => Promise.all([listener.close(), sequencer.stop(), tip.stop()]));
  return tip;
}

/** Everything that is kept after a sequence, by id. */
async function logged(above: bigint): Promise<string[]> {
  const ids: string[] = [];
  const { newest } = await logBounds(database.pool);
  for (let rest: Parameters<typeof readLog>[2] | undefined = { above, below: newest + 1n }; rest;) {
    const page: Awaited<ReturnType<typeof readLog>> = await readLog(database.pool, {}, rest);
    ids.push(...page.entries.map(({ envelope }) => envelope.id));
    rest = page.rest;
  }
  return ids;
}

/** Sequences all that is committed. */
async function sequenceAll(): Promise<void> {
  while ((await sequencePage(database.pool)) > 0);
}

test("an event that commits after one with a higher position is still told, after it", async () => {
  const [first, second] = [await connection(), await connection()];
  await sequenceAll();
  const { newest } = await logBounds(database.pool);

  await first.query("BEGIN");
  const [early] = await insertEvents(first, [{ subject: "lower position" }]);
  await second.query("BEGIN");
  const [late] = await insertEvents(second, [{ subject: "higher position" }]);
  await second.query("COMMIT");
  await sequenceAll();
  expect(await logged(newest)).toEqual([late]);

  const seen = (await logBounds(database.pool)).newest;
  await first.query("COMMIT");
  await sequenceAll();
  expect(await logged(seen)).toEqual([early]);
});

test("events of one transaction, and of one connection, keep their order", async () => {
  await sequenceAll();
  const { newest } = await logBounds(database.pool);
  const client = await connection();
  const first = await insertEvents(client, [{}, {}, {}]);
  const second = await insertEvents(client, [{}, {}]);
  await sequenceAll();
  expect(await logged(newest)).toEqual([...first, ...second]);
});

test("numbers leave no gap, whatever rolls back", async () => {
  const client = await connection();
  await client.query("BEGIN");
  await insertEvents(client, [{}]);
  await client.query("ROLLBACK");
  await insertEvents(client, [{}]);
  await sequenceAll();
  const { rows } = await database.pool.query<{ gaps: number }>(
    "SELECT (max(sequence) - min(sequence) + 1 - count(*))::int AS gaps FROM event_log",
  );
  expect(rows).toEqual([{ gaps: 0 }]);
});

test("a relay that holds an event's row, since the queues hang, doesn't hold its place up", async () => {
  await sequenceAll();
  const { newest } = await logBounds(database.pool);
  const [id] = await insertEvents(database.pool, [{}]);
  const relay = await connection();
  await relay.query("BEGIN");
  await relay.query("SELECT FROM outbox_message WHERE id = $1 FOR UPDATE", [id]);
  await sequenceAll();
  expect(await logged(newest)).toEqual([id]);
  await relay.query("ROLLBACK");
});

test("a sequencer that died amid a page leaves it to another", async () => {
  await sequenceAll();
  const { newest } = await logBounds(database.pool);
  const dying = await connection();
  dying.on("error", () => undefined);
  await dying.query("BEGIN");
  await dying.query("SELECT FROM event_log_bounds FOR UPDATE");
  const { rows } = await dying.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const [id] = await insertEvents(database.pool, [{}]);
  expect(await sequencePage(database.pool)).toBe(0);

  await database.pool.query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
  await until("the other's lock to be gone", 15_000, async () => (await sequencePage(database.pool)) > 0 || undefined);
  expect(await logged(newest)).toEqual([id]);
});

/** A writer's transactions: what each waits for before its end, and whether it commits. */
const transactions = fc.array(
  fc.record({ events: fc.integer({ min: 1, max: 4 }), holdMs: fc.integer({ min: 0, max: 12 }), commits: fc.boolean() }),
  { minLength: 5, maxLength: 12 },
);

test("of many writers, each committed event comes once, in its writer's order, over every resume", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(transactions, { minLength: 4, maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 15 }), { minLength: 3, maxLength: 6 }),
      async (writers, breaks) => {
        const tips = [replica(), replica()];
        await sequenceAll();
        const start = (await logBounds(database.pool)).newest;
        const written: string[][] = [];
        const working = Promise.all(writers.map(async (work, n) => void (written[n] = await write(work))));
        const told = await follow(tips, start, breaks, async () => {
          await working;
          return written.flat().length;
        });
        for (const close of opened.splice(0).reverse()) await close();

        expect([...told].sort()).toEqual(written.flat().sort());
        for (const ids of written) expect(told.filter((id) => ids.includes(id))).toEqual(ids);
      },
    ),
    { numRuns: 6 },
  );
}, 60_000);

type Transactions = { events: number; holdMs: number; commits: boolean }[];

/** Answers the ids of what was committed. */
async function write(work: Transactions): Promise<string[]> {
  const client = await connection();
  const ids: string[] = [];
  for (const { events, holdMs, commits } of work) {
    await client.query("BEGIN");
    const mine = await insertEvents(
      client,
      Array.from({ length: events }, () => ({})),
    );
    await wait(holdMs);
    await client.query(commits ? "COMMIT" : "ROLLBACK");
    if (commits) ids.push(...mine);
  }
  return ids;
}

/**
 * Watches by one replica after the other, from wherever the last one broke off, until as many came as `total` says in
 * the end, and a moment longer: what is told twice would come then.
 */
async function follow(
  tips: LogTip[],
  start: bigint,
  breaks: number[],
  total: () => Promise<number>,
): Promise<string[]> {
  const told: string[] = [];
  let cursor = start;
  let expected = Infinity;
  void total().then((count) => (expected = count));
  for (let turn = 0; told.length < expected; turn += 1) {
    const tip = tips[turn % tips.length];
    if (!tip) throw new Error("no replica");
    const signal = AbortSignal.timeout(20_000);
    const steps = watchLog({ pool: database.pool, tip, filter: {}, afterSequence: cursor, signal, heartbeatMs: 50 });
    let left = breaks[turn % breaks.length] ?? 1;
    for await (const { entry, sequence } of steps) {
      cursor = sequence;
      if (entry) told.push(entry.envelope.id);
      if (entry) left -= 1;
      if (left === 0 || told.length >= expected) break;
    }
    signal.throwIfAborted();
  }
  expect((await logBounds(database.pool)).newest).toBe(cursor);
  return told;
}
