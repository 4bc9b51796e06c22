import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { QuotaChangedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/capacity_pb";
import { deadlinesOf, startDeadlines } from "@runtime-cloud/eventing/deadlines";
import { on } from "@runtime-cloud/eventing/event-handler";
import { type InboxOutcome, startInbox } from "@runtime-cloud/eventing/inbox";
import { postgresBackend } from "@runtime-cloud/eventing/queues/postgres-backend";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { startRelay } from "@runtime-cloud/eventing/relay";
import { redriveParked } from "@runtime-cloud/eventing/event-log/redrive";
import { startWorkQueue } from "@runtime-cloud/eventing/queues/work-queue";
import { until } from "@runtime-cloud/local-servers/until";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import pg from "pg";
import { z } from "zod";
import { emptyDatabase } from "../_support/database.ts";
import { startTcpProxy } from "../_support/tcp-proxy.ts";
import { setNewQuota } from "./quotas.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

/* What the Redis tests hold in detail, once over the backend that stands in where no Redis is. */

const logger = silentLogger();
const subscriber = "StudioBff";
/** BullMQ's MIGRATION_ADVISORY_LOCK_KEY: whoever holds it creates the tables. */
const MIGRATION_LOCK = 0x42554c4c;
const LONGER_THAN_A_CONNECTION_MAY_TAKE_MS = 2_500;
let database: ServiceDatabase;
let backend: QueueBackend;

beforeAll(async () => {
  database = await openServiceDatabase();
  backend = postgresBackend({ url: database.url, prefix: "{runtime-cloud}", logger });
});
afterAll(async () => {
  await backend.close();
  await database.close();
});

test("several queues wait at once while the very first use creates the tables", async () => {
  const { url, drop } = await emptyDatabase();
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  await other.query("SELECT pg_advisory_lock($1, hashtext('runtime_cloud_queues'))", [MIGRATION_LOCK]);
  const fresh = postgresBackend({ url, prefix: "{runtime-cloud}", logger });
  const names = ["first", "second", "third"];
  const adding = Promise.all(names.map((name) => fresh.add(name, [{ name: "job", data: {} }])));
  const waiting = async () => {
    const { rowCount } = await other.query("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
    return rowCount === names.length || undefined;
  };
  await Promise.all([until("all wait", 10_000, waiting), setTimeout(LONGER_THAN_A_CONNECTION_MAY_TAKE_MS)]);
  await other.query("SELECT pg_advisory_unlock_all()");
  await adding;
  await Promise.all(names.map(async (name) => expect(await fresh.queue(name).getWaitingCount()).toBe(1)));
  await fresh.close();
  await other.end();
  await drop();
});

test("a worker whose first connection came to nothing has another, and takes its jobs", async () => {
  const proxy = await startTcpProxy(Number(new URL(database.url).port));
  const late = postgresBackend({ url: proxy.through(database.url), prefix: "{late}", logger });
  const done: unknown[] = [];
  proxy.blackhole();
  late.worker("late", ({ data }) => Promise.resolve(done.push(data)), { concurrency: 1 });
  await setTimeout(LONGER_THAN_A_CONNECTION_MAY_TAKE_MS);
  proxy.forward();
  await late.add("late", [{ name: "job", data: "asked" }]);
  expect(await until("the job", 20_000, () => done[0])).toBe("asked");
  await late.close();
  await proxy.close();
});

test("brings an event from the outbox to its handler, and redrives a parked one", async () => {
  expect(await backend.check()).toBe("ready");
  const outcomes: InboxOutcome[] = [];
  const relay = startRelay({ pool: database.pool, backend, subscribers: [subscriber], logger });
  const seen: string[] = [];
  const inbox = startInbox({
    subscriber,
    backend,
    context: database.context,
    handlers: [on(QuotaChangedSchema, "Show", async (_unit, { quotaId }) => void seen.push(quotaId))],
    logger,
    observe: (outcome) => void outcomes.push(outcome),
  });
  const { id } = await setNewQuota(database, "tenant-a");
  await until("the event", 10_000, () => seen[0]);
  expect(seen).toEqual([id]);

  await backend.add(inboxOf(subscriber), [{ name: "broken", data: { specversion: "0.3" } }]);
  await until("it is parked", 10_000, () => (outcomes.includes("parked") ? true : undefined));
  const queue = backend.queue(inboxOf(subscriber));
  await until("it shows", 10_000, async () => ((await queue.getFailedCount()) === 1 ? true : undefined));
  expect(await redriveParked(queue)).toBe(1);
  await until("it is parked again", 10_000, () => outcomes.filter((outcome) => outcome === "parked")[1]);
  await relay.stop();
  await inbox.stop();
});

test("wakes a deadline about a second after its instant, and puts back an early one", async () => {
  const behindMs = 1_500;
  let woken: Date | undefined;
  const deadlines = startDeadlines({
    service: "ExecutionCapacityService",
    backend,
    deadlines: [
      {
        kind: "lease-expiry",
        sweepEveryMs: 3_600_000,
        run: async () => {
          if (armed) woken = new Date();
          return { ended: ["lease-1"] };
        },
      },
    ],
    logger,
    clock: systemClock,
    databaseNow: async () => new Date(Date.now() - behindMs),
  });
  let armed = false;
  const at = new Date(Date.now() + 700);
  await deadlines.arm("lease-expiry", at, { pool: "runners" });
  armed = true;
  const wokenAt = await until("the wake-up", 15_000, () => woken);
  expect(wokenAt.getTime()).toBeGreaterThanOrEqual(at.getTime() + behindMs);
  const queue = backend.queue(deadlinesOf("ExecutionCapacityService"));
  const job = await until("its result", 15_000, async () => (await queue.getCompleted())[0]);
  expect(job.returnvalue).toEqual({ ended: ["lease-1"], count: 1 });
  await deadlines.stop();
});

test("does work once while it waits, and once more when asked meanwhile", async () => {
  const done: number[] = [];
  let release = (): void => undefined;
  const work = startWorkQueue({
    name: "test.work",
    backend,
    concurrency: 2,
    data: z.object({ turn: z.number() }),
    async handle({ turn }) {
      done.push(turn);
      if (turn === 1) await new Promise<void>((resolve) => (release = resolve));
    },
    logger,
  });
  await work.enqueue("run-1", { turn: 1 });
  await until("the first turn", 10_000, () => done[0]);
  await work.enqueue("run-1", { turn: 2 });
  await work.enqueue("run-1", { turn: 3 });
  expect(done).toEqual([1]);
  release();
  await until("one more turn", 10_000, () => done[1]);
  await work.close();
  expect(done).toEqual([1, 3]);
});
