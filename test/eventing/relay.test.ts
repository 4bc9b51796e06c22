import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { parseCloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { QuotaChangedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/capacity_pb";
import { on } from "@runtime-cloud/eventing/event-handler";
import { type InboxOutcome, startInbox } from "@runtime-cloud/eventing/inbox";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { outboxLag, type Relay, startRelay } from "@runtime-cloud/eventing/relay";
import { startRedis } from "@runtime-cloud/local-servers/redis";
import { until } from "@runtime-cloud/local-servers/until";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { Redis } from "ioredis";
import { testRedis } from "../_support/redis.ts";
import { setNewQuota } from "./quotas.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

/** Consumers of QuotaChanged, which every quota that is set announces. */
const subscribers = ["RunControlService", "StudioBff"];
const logger = silentLogger();
const NO_POLL_MS = 600_000;

let database: ServiceDatabase;
let backend: QueueBackend;
/** What a test opened, closed after it in the opposite order, however it ended. */
let opened: (() => Promise<void>)[];

beforeAll(async () => {
  database = await openServiceDatabase();
});
afterAll(() => database.close());
beforeEach(() => {
  opened = [];
  backend = open(testRedis());
});
afterEach(async () => {
  for (const close of opened.reverse()) await close();
});

function open(redis: { url: string; prefix: string }): QueueBackend {
  const made = redisBackend({ ...redis, logger });
  opened.push(() => made.close());
  return made;
}

function start(to = backend, options: { pollMs?: number } = {}): Relay {
  const relay = startRelay({ pool: database.pool, backend: to, subscribers, logger, ...options });
  opened.push(() => relay.stop());
  return relay;
}

async function redisServer(options: Parameters<typeof startRedis>[0] = {}) {
  const redis = await startRedis(options);
  opened.push(() => redis.stop());
  return redis;
}

const waiting = async (queue: string) => backend.queue(inboxOf(queue)).getWaiting();
const published = () =>
  until("an empty outbox", 15_000, async () => ((await outboxLag(database.pool)).waiting === 0 ? true : undefined));

test("brings an event to every subscriber of the deployment, as soon as whoever committed it says so", async () => {
  const { wake } = start(backend, { pollMs: NO_POLL_MS });
  const { id } = await setNewQuota({ ...database, context: { ...database.context, announced: wake } }, "tenant-a", 2);
  await published();

  for (const subscriber of subscribers) {
    const jobs = await waiting(subscriber);
    const job = jobs.find(({ data }) => parseCloudEvent(data).subject === id);
    expect(job?.name).toBe("capacity.quotas.v1.quota-changed");
    expect(job?.data).toMatchObject({ subject: id, tenantid: "tenant-a", data: { concurrentRuns: 2 } });
  }
  expect(await waiting("AuditService")).toEqual([]);
});

test("finds by its poll what another process committed", async () => {
  start();
  await published();
  await setNewQuota(database, "tenant-elsewhere");
  await published();
});

test("doesn't try with each commit while the queues are away", async () => {
  let tries = 0;
  const away: QueueBackend = {
    ...backend,
    add() {
      tries += 1;
      return Promise.reject(new Error("away"));
    },
  };
  await setNewQuota(database, "tenant-waits");
  const wokenAt = performance.now();
  const relay = start(away);
  await until("three tries", 10_000, () => {
    relay.wake();
    return tries >= 3 * subscribers.length || undefined;
  });
  // After backoffs of at least 100 and 200 ms, though it was woken all the time.
  expect(performance.now() - wokenAt).toBeGreaterThan(250);
  await relay.stop();
  start();
  await published();
});

test("shares a backlog between relays, each event once", async () => {
  const many = 1_200;
  const { id } = await setNewQuota(database, "tenant-many");
  await database.pool.query(
    `INSERT INTO outbox_message (id, topic, tenant_id, subject, envelope)
     SELECT copy, topic, tenant_id, subject, jsonb_set(envelope, '{id}', to_jsonb(copy))
     FROM outbox_message, (SELECT gen_random_uuid() AS copy FROM generate_series(2, $2)) copies WHERE subject = $1`,
    [id, many],
  );
  expect(await outboxLag(database.pool)).toMatchObject({ waiting: many });
  start();
  start();
  await published();
  const jobs = await waiting("StudioBff");
  expect(new Set(jobs.map(({ id }) => id)).size).toBe(many);
  expect(jobs).toHaveLength(many);
  expect(await outboxLag(database.pool)).toEqual({ waiting: 0, oldestSeconds: 0 });
});

test("publishes again what a relay added and died before marking; the inbox has it once", async () => {
  const { id } = await setNewQuota(database, "tenant-crash");
  const dying = start({
    ...backend,
    async add(queue, jobs) {
      await backend.add(queue, jobs);
      throw new Error("the process dies here");
    },
  });
  await until("it is added", 15_000, async () => ((await waiting("StudioBff")).length > 0 ? true : undefined));
  await dying.stop();
  expect((await outboxLag(database.pool)).waiting).toBe(1);

  const outcomes: InboxOutcome[] = [];
  const seen: string[] = [];
  const inbox = startInbox({
    subscriber: "StudioBff",
    backend,
    context: database.context,
    handlers: [on(QuotaChangedSchema, "Show", async (_unit, { quotaId }) => void seen.push(quotaId))],
    logger,
    observe: (outcome) => void outcomes.push(outcome),
  });
  opened.push(() => inbox.stop());
  await until("the first delivery", 15_000, () => (outcomes.length > 0 ? true : undefined));
  // The queue has forgotten the first job, so the second is a delivery of its own.
  await backend.queue(inboxOf("StudioBff")).obliterate({ force: true });
  start();
  await published();
  await until("the second delivery", 15_000, () => (outcomes.length > 1 ? true : undefined));
  expect(outcomes).toEqual(["handled", "duplicate"]);
  expect(seen).toEqual([id]);
});

test("keeps events while Redis is away, and publishes them when it is back", async () => {
  const first = await redisServer();
  const away = open({ url: first.url, prefix: "away" });
  const stranded = start(away);
  await setNewQuota(database, "tenant-before");
  await published();

  await first.kill();
  await setNewQuota(database, "tenant-during");
  expect((await stranded.lag()).waiting).toBe(1);

  await redisServer({ port: first.port, password: first.password });
  await published();
  const jobs = await away.queue(inboxOf("StudioBff")).getWaiting();
  expect(jobs.map(({ data }) => data)).toMatchObject([{ tenantid: "tenant-during" }]);
});

test("starts before its Redis does", async () => {
  const early = await redisServer();
  await early.stop();
  const away = open({ url: early.url, prefix: "early" });
  expect(await away.check()).toBe("away");
  start(away);
  await setNewQuota(database, "tenant-early");
  await redisServer({ port: early.port, password: early.password });
  await published();
  expect(await away.check()).toBe("ready");
});

test("publishes on after Redis lost everything", async () => {
  const server = await redisServer();
  const wiped = open({ url: server.url, prefix: "wiped" });
  start(wiped);
  await setNewQuota(database, "tenant-1");
  await published();
  const redis = new Redis(server.url);
  await redis.flushall();
  await redis.quit();
  await setNewQuota(database, "tenant-2");
  await published();
  const jobs = await wiped.queue(inboxOf("StudioBff")).getWaiting();
  expect(jobs.map(({ data }) => data)).toMatchObject([{ tenantid: "tenant-2" }]);
});

test("refuses a Redis that may evict jobs, saying how to set it right", async () => {
  const server = await redisServer();
  const redis = new Redis(server.url);
  await redis.config("SET", "maxmemory-policy", "allkeys-lru");
  const evicting = open({ url: server.url, prefix: "evicting" });
  await expect(evicting.check()).rejects.toThrow(/maxmemory-policy is allkeys-lru.*noeviction/);
  await redis.quit();
});

test("refuses a subscriber that consumes nothing", () => {
  expect(() => startRelay({ pool: database.pool, backend, subscribers: ["Typo"], logger })).toThrow(
    /SUBSCRIBERS names Typo, which no event is delivered to; the names that exist: .*StudioBff/,
  );
});
