import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from "@jest/globals";
import { logBounds } from "@runtime-cloud/eventing/event-log/event-log";
import { sequencePage } from "@runtime-cloud/eventing/event-log/event-sequencer";
import { type WatchOptions, type WatchStep, watchLog } from "@runtime-cloud/eventing/event-log/event-watch";
import { type LogTip, logTip } from "@runtime-cloud/eventing/event-log/log-tip";
import { watcherLimit } from "@runtime-cloud/eventing/event-log/watcher-limit";
import { Exhausted, OutOfRange } from "@runtime-cloud/service-kit/errors";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { insertEvents } from "./outbox-rows.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

const HEARTBEAT_MS = 30;

let database: ServiceDatabase;
let tip: LogTip;
let stopping: AbortController;

beforeAll(async () => {
  database = await openServiceDatabase();
});
afterAll(() => database.close());
beforeEach(() => {
  tip = logTip(database.pool, silentLogger());
  stopping = new AbortController();
});
afterEach(async () => {
  stopping.abort();
  await tip.stop();
});

function watch(options: Partial<WatchOptions> = {}): AsyncGenerator<WatchStep, void> {
  const { pool } = database;
  const common = { pool, tip, filter: {}, signal: stopping.signal, heartbeatMs: HEARTBEAT_MS };
  return watchLog({ ...common, afterSequence: undefined, ...options });
}

async function next(steps: AsyncGenerator<WatchStep, void>): Promise<WatchStep> {
  const { value } = await steps.next();
  if (!value) throw new Error("the watch has ended");
  return value;
}

/** Adds events to the log, and answers its newest sequence. */
async function grow(count: number): Promise<bigint> {
  await insertEvents(
    database.pool,
    Array.from({ length: count }, () => ({})),
  );
  while ((await sequencePage(database.pool)) > 0);
  const { newest } = await logBounds(database.pool);
  tip.reach(newest);
  return newest;
}

test("a heartbeat carries the newest sequence though the filter lets nothing through", async () => {
  const steps = watch({ filter: { tenantId: "nobody" } });
  let heartbeat = await next(steps);
  const newest = await grow(120);
  while (heartbeat.sequence < newest) {
    heartbeat = await next(steps);
    expect(heartbeat.entry).toBeUndefined();
  }
  expect(heartbeat.sequence).toBe(newest);
});

test("a quiet log gives heartbeats", async () => {
  const steps = watch();
  const { sequence } = await next(steps);
  expect([await next(steps), await next(steps)]).toEqual([{ sequence }, { sequence }]);
});

test("reads no page before the last one was taken", async () => {
  const query = jest.spyOn(database.pool, "query");
  const reads = () => query.mock.calls.filter(([text]) => text.startsWith("WITH page")).length;
  const steps = watch({ heartbeatMs: 60_000 });
  await steps.next();
  await grow(250);
  for (let taken = 0; taken < 100; taken += 1) await steps.next();
  expect(reads()).toBe(1);
  await steps.next();
  expect(reads()).toBe(2);
  query.mockRestore();
});

test("what comes while a page is being taken is told after it", async () => {
  const steps = watch({ heartbeatMs: 60_000 });
  const { sequence: start } = await next(steps);
  await grow(2);
  const told = [(await next(steps)).sequence];
  await grow(2);
  while (told.length < 4) told.push((await next(steps)).sequence);
  expect(told).toEqual([start + 1n, start + 2n, start + 3n, start + 4n]);
});

test("a watcher that retention overtakes on its way is told, and skips nothing in silence", async () => {
  const steps = watch({ heartbeatMs: 60_000 });
  await steps.next();
  const newest = await grow(150);
  for (let taken = 0; taken < 100; taken += 1) await steps.next();
  await database.pool.query("UPDATE event_log_bounds SET removed = $1", [String(newest - 10n)]);
  await expect(steps.next()).rejects.toThrow(OutOfRange);
  await database.pool.query("UPDATE event_log_bounds SET removed = 0");
});

test("ends at its signal, while it waits too", async () => {
  const steps = watch({ heartbeatMs: 60_000 });
  await steps.next();
  const last = steps.next();
  stopping.abort();
  expect(await last).toEqual({ done: true, value: undefined });
});

test("a process takes so many watchers and no more; one that leaves makes room", () => {
  const watchers = watcherLimit(2);
  const hangUp = new AbortController();
  const leave = watchers.enter(stopping.signal);
  watchers.enter(hangUp.signal);
  expect(() => watchers.enter(stopping.signal)).toThrow(Exhausted);
  leave();
  expect(() => watchers.enter(stopping.signal)).not.toThrow();
  expect(() => watchers.enter(stopping.signal)).toThrow(Exhausted);
  hangUp.abort();
  expect(() => watchers.enter(stopping.signal)).not.toThrow();
});
