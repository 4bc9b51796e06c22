import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { until } from "@runtime-cloud/local-servers/until";
import { insertEvents, TOPIC } from "../../eventing/outbox-rows.ts";
import { eventId, type LogClient, type LogService, startLogService } from "./log-service.ts";

const TENANT = "tenant-a";
/** What a promise of the stream may take; much less than a heartbeat. */
const SOON_MS = 8_000;

let service: LogService;
const stops: AbortController[] = [];

beforeAll(async () => {
  service = await startLogService();
});
afterAll(() => service.close());
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

type WatchRequest = Parameters<LogClient["watchEvents"]>[0];

/** A watcher that is on: its first message, a heartbeat, has come. */
async function watching(client: LogClient, request: WatchRequest = {}) {
  const stop = new AbortController();
  stops.push(stop);
  const stream = client.watchEvents(request, { signal: stop.signal })[Symbol.asyncIterator]();
  const first = await stream.next();
  if (first.done) throw new Error("the stream has ended");
  expect(first.value.event).toBeUndefined();
  let cursor = first.value.sequence;

  return {
    get cursor() {
      return cursor;
    },
    stop: () => stop.abort(),
    /** The ids of the next events. */
    async next(count: number): Promise<string[]> {
      const ids: string[] = [];
      while (ids.length < count) {
        const step = await stream.next();
        if (step.done) throw new Error("the stream has ended");
        cursor = step.value.sequence;
        if (step.value.event) ids.push(eventId(step.value.event));
      }
      return ids;
    },
    /** How the stream ends. */
    async end(): Promise<unknown> {
      try {
        while (!(await stream.next()).done);
        return "complete";
      } catch (error) {
        return error;
      }
    },
  };
}

const insert = (count: number, tenantId = TENANT, topic = TOPIC) =>
  insertEvents(
    service.database.pool,
    Array.from({ length: count }, () => ({ tenantId, topic })),
  );

const refusal = async (client: LogClient, request: WatchRequest) => {
  try {
    for await (const message of client.watchEvents(request)) return message;
    return undefined;
  } catch (error) {
    return error;
  }
};

test("tells what is announced from now on, and no other tenant's", async () => {
  await insert(2);
  await until("both have their place", 15_000, async () => {
    return (await service.database.pool.query("SELECT FROM unsequenced_event")).rowCount === 0 || undefined;
  });
  const watch = await watching(await service.as(TENANT));
  await insert(1, "tenant-b");
  const announced = await insert(3);
  expect(await watch.next(3)).toEqual(announced);
});

test("goes on without a gap behind the cursor of a watch that broke off, at another replica", async () => {
  const other = await service.replica();
  const clients = [await service.as(TENANT), await other.as(TENANT)];
  const announced: string[] = [];
  const told: string[] = [];
  let afterSequence = (await watching(await service.as(TENANT))).cursor;
  for (let turn = 0; turn < 6; turn += 1) {
    announced.push(...(await insert(5)));
    const client = clients[turn % 2];
    if (!client) throw new Error("there are two");
    const watch = await watching(client, { afterSequence });
    told.push(...(await watch.next(3)));
    afterSequence = watch.cursor;
    watch.stop();
  }
  const last = await watching(await service.as(TENANT), { afterSequence });
  told.push(...(await last.next(announced.length - told.length)));
  expect(told).toEqual(announced);
});

test("after_sequence 0 begins with the oldest that is kept, page after page", async () => {
  const announced = await insert(250, "tenant-long");
  const watch = await watching(await service.as("tenant-long"), { afterSequence: 0n });
  expect(await watch.next(250)).toEqual(announced);
});

test("lets only the asked topics and subject through", async () => {
  const topics = ["capacity.leases.v1.capacity-lease-granted"];
  const watch = await watching(await service.as(TENANT), { topics });
  await insert(2);
  const announced = await insert(1, TENANT, topics[0]);
  expect(await watch.next(1)).toEqual(announced);
});

test("ends UNAVAILABLE when its process drains, and goes on at another", async () => {
  const other = await service.replica();
  const watch = await watching(await other.as(TENANT));
  const before = await insert(2);
  expect(await watch.next(2)).toEqual(before);
  const stopping = other.running.stop();
  expect(await watch.end()).toMatchObject({ code: Code.Unavailable });
  const meanwhile = await insert(2);
  await stopping;

  const resumed = await watching(await service.as(TENANT), { afterSequence: watch.cursor });
  expect(await resumed.next(2)).toEqual(meanwhile);
});

test("a cursor ahead of the log, or one that retention has overtaken, is refused with where the log is", async () => {
  const watch = await watching(await service.as(TENANT));
  await insert(3);
  await watch.next(3);
  const newest = watch.cursor;
  const client = await service.as(TENANT);
  expect(await refusal(client, { afterSequence: newest + 1n })).toMatchObject({
    code: Code.OutOfRange,
    rawMessage: expect.stringContaining(`afterSequence ${newest + 1n} is ahead of this log, whose newest is ${newest}`),
  });
  const { pool } = service.database;
  await pool.query("DELETE FROM event_log WHERE sequence < $1", [String(newest)]);
  await pool.query("UPDATE event_log_bounds SET removed = $1", [String(newest - 1n)]);
  expect(await refusal(client, { afterSequence: newest - 2n })).toMatchObject({
    code: Code.OutOfRange,
    rawMessage: expect.stringContaining(`go on after ${newest - 1n}`),
  });
  expect(await refusal(client, { afterSequence: -1n })).toMatchObject({ code: Code.InvalidArgument });
  expect(await refusal(client, { topics: ["nope"] })).toMatchObject({
    code: Code.InvalidArgument,
    rawMessage: expect.stringContaining("topics[0]: nope isn't announced by ExecutionCapacityService"),
  });
  const kept = await watching(client, { afterSequence: 0n });
  expect(await kept.next(1)).toHaveLength(1);
});

test(
  "needs no Redis",
  async () => {
    const alone = await startLogService({ REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
    try {
      const watch = await watching(await alone.as(TENANT));
      const announced = await insertEvents(alone.database.pool, [{ tenantId: TENANT }]);
      expect(await watch.next(1)).toEqual(announced);
      watch.stop();
      expect(await watch.end()).toBeInstanceOf(ConnectError);
    } finally {
      await alone.close();
    }
  },
  4 * SOON_MS,
);
