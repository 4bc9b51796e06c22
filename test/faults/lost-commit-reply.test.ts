import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { testDatabase, type TestDatabase } from "../_support/database.ts";
import { type EventPath, type EventPathOptions, openEventPath, TAKER } from "../_support/event-path.ts";
import { attempt, startCapacity, staticPool } from "../_support/execution-capacity.ts";
import { testRedis } from "../_support/redis.ts";
import { startTcpProxy, type TcpProxy } from "../_support/tcp-proxy.ts";

const EVENTS = 20;
const REACTION_MS = 10_000;

let database: TestDatabase;
let proxy: TcpProxy;
/** What a test opened, closed after it. */
let opened: (() => Promise<void>)[];

beforeAll(async () => {
  const { port } = new URL(process.env["TEST_DATABASE_ADMIN_URL"] ?? "");
  proxy = await startTcpProxy(Number(port));
});
afterAll(() => proxy.close());
beforeEach(async () => {
  database = await testDatabase("execution-capacity");
  opened = [];
});
afterEach(async () => {
  proxy.forward();
  for (const close of opened) await close();
  await database.drop();
});

async function open(by: NonNullable<EventPathOptions["by"]>): Promise<EventPath> {
  const path = await openEventPath({ databaseUrl: database.url, redis: testRedis(), by });
  opened.push(() => path.close());
  // Once one event is through, the next COMMIT of its parts is the next event's.
  await path.change("tenant-0");
  expect(await path.broken()).toEqual([]);
  path.outcomes.length = 0;
  return path;
}

test("a command's caller is told that its outcome is unknown, and the repeat has the first result, once", async () => {
  const service = await startCapacity({ through: proxy.through });
  opened.push(() => service.close());
  const client = service.as("tenant-a");
  await client.setQuota({ concurrentRuns: 1, concurrentSandboxes: 1 });

  const byKey = { concurrentRuns: 5, concurrentSandboxes: 5, idempotencyKey: uuidv7() };
  const first = proxy.cutAfterCommit();
  expect(await refusal(client.setQuota(byKey))).toEqual({ code: Code.Unavailable, says: OUTCOME_UNKNOWN });
  await first;
  const { quota } = await client.setQuota(byKey);
  expect(quota?.concurrentRuns).toBe(5);
  expect(await client.setQuota(byKey)).toMatchObject({ quota: { quotaId: quota?.quotaId } });

  await client.setWorkerPool(staticPool("pool", 5));
  const byHolder = attempt("pool");
  const second = proxy.cutAfterCommit();
  // A lease's operation may always be repeated, so the service does so itself.
  const { lease } = await client.acquireLease(byHolder);
  await second;
  expect((await client.acquireLease(byHolder)).lease).toEqual(lease);
  expect(await service.database.capacityLease.findMany()).toMatchObject([{ id: lease?.leaseId, state: "ACTIVE" }]);

  const announced = (await service.announced("tenant-a")).map(({ event }) => event);
  expect(announced.filter((event) => event === "QuotaChanged")).toHaveLength(2);
  expect(announced.filter((event) => event === "CapacityLeaseGranted")).toHaveLength(1);
  expect(await service.differences()).toEqual([]);
});

test("a relay's lost mark has its events delivered again, and each takes effect once", async () => {
  const path = await open({ relay: proxy.through(database.url) });
  const cut = proxy.cutBeforeCommit();
  await path.change("tenant-0");
  await cut;
  proxy.blackhole();
  await until("the first delivery's effect", REACTION_MS, () => path.outcomes.includes("handled") || undefined);
  // The queue has forgotten the first job, so the second is a delivery of its own.
  await path.backend.queue(inboxOf(TAKER)).obliterate({ force: true });
  proxy.forward();

  expect(await path.broken()).toEqual([]);
  expect(path.outcomes).toEqual(["handled", "duplicate"]);
});

test("a relay that doesn't hear of its mark loses no event", async () => {
  const path = await open({ relay: proxy.through(database.url) });
  const cut = proxy.cutAfterCommit();
  for (let event = 0; event < EVENTS; event += 1) await path.change("tenant-0");
  await cut;
  expect(await path.broken()).toEqual([]);
});

test("an inbox that doesn't hear of its commit takes the event in again, without a second effect", async () => {
  const path = await open({ inbox: proxy.through(database.url) });
  const cut = proxy.cutAfterCommit();
  await path.change("tenant-0");
  await cut;
  await until("the second delivery", REACTION_MS, () => path.outcomes.includes("duplicate") || undefined);
  expect(await path.broken()).toEqual([]);
});

const OUTCOME_UNKNOWN = "the outcome is unknown: repeat the call with the same key";

async function refusal(call: Promise<unknown>): Promise<{ code: Code; says: string }> {
  const error = await call.then(
    () => new Error("the call went well"),
    (reason: unknown) => reason,
  );
  const { code, rawMessage: says } = ConnectError.from(error);
  return { code, says };
}
