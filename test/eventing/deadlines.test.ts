import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Deadline, type Deadlines, deadlinesOf, startDeadlines } from "@runtime-cloud/eventing/deadlines";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { startRedis } from "@runtime-cloud/local-servers/redis";
import { until } from "@runtime-cloud/local-servers/until";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { Redis } from "ioredis";
import { testRedis } from "../_support/redis.ts";

const logger = silentLogger();
const service = "ExecutionCapacityService";
const NEVER_MS = 3_600_000;
/** How much later than its second or two a machine that does other things may be. */
const BUSY_MS = 8_000;
const now = () => Promise.resolve(new Date());
const inMs = (ms: number) => new Date(Date.now() + ms);

let backend: QueueBackend;
let started: Deadlines | undefined;
beforeEach(() => {
  backend = redisBackend({ ...testRedis(), logger });
});
afterEach(async () => {
  await started?.stop();
  await backend.close();
});

/** Leases that end at their instants; `run` ends what is due, as one that reads a table would. */
function leases(sweepEveryMs: number, clock: () => Promise<Date> = now) {
  const due = new Map<string, Date>();
  const ended: { id: string; at: number }[] = [];
  const deadline: Deadline = {
    kind: "lease-expiry",
    sweepEveryMs,
    async run() {
      const instant = await clock();
      const ids = [...due].filter(([, at]) => at <= instant).map(([id]) => id);
      for (const id of ids) {
        due.delete(id);
        ended.push({ id, at: Date.now() });
      }
      return { ended: ids };
    },
  };
  return {
    due,
    ended,
    deadline,
    end: (count: number) => until("it ends", 20_000, () => (ended.length >= count ? ended : undefined)),
  };
}

function start(deadline: Deadline, { to = backend, databaseNow = now } = {}): Deadlines {
  started = startDeadlines({ service, backend: to, deadlines: [deadline], logger, clock: systemClock, databaseNow });
  return started;
}

const jobs = () => backend.queue(deadlinesOf(service)).getJobs(["delayed", "waiting", "active", "completed"]);

test("ends what is due about a second after its instant, and shows what it ended", async () => {
  const { due, deadline, end } = leases(NEVER_MS);
  const deadlines = start(deadline);
  const at = inMs(1_200);
  due.set("lease-1", at);
  await deadlines.arm("lease-expiry", at, { pool: "runners" });
  const [lease] = await end(1);
  expect(lease?.at).toBeGreaterThanOrEqual(at.getTime());
  expect(lease?.at).toBeLessThan(at.getTime() + 2_000 + BUSY_MS);

  const job = await until(
    "the job is done",
    10_000,
    async () => (await backend.queue(deadlinesOf(service)).getCompleted())[0],
  );
  expect(job.data).toMatchObject({ kind: "lease-expiry", label: { pool: "runners" } });
  expect(job.returnvalue).toEqual({ ended: ["lease-1"], count: 1 });
});

test("arms a second once, whoever asks and however often", async () => {
  const { deadline } = leases(NEVER_MS);
  const deadlines = start(deadline);
  const at = inMs(600_000);
  await Promise.all(Array.from({ length: 50 }, () => deadlines.arm("lease-expiry", at)));
  const replica = startDeadlines({
    service,
    backend,
    deadlines: [deadline],
    logger,
    clock: systemClock,
    databaseNow: now,
  });
  await replica.arm("lease-expiry", at);
  await replica.stop();
  const armed = await jobs();
  expect(armed.map(({ id }) => id)).toEqual([`due_lease-expiry_${Math.ceil(at.getTime() / 1_000)}`]);
});

test("ends at once what is past already", async () => {
  const { due, deadline, end } = leases(NEVER_MS);
  const deadlines = start(deadline);
  await until("the sweep of the start", 10_000, async () => ((await jobs()).length === 0 ? true : undefined));
  due.set("late", inMs(-5_000));
  await deadlines.arm("lease-expiry", inMs(-5_000));
  expect(await end(1)).toMatchObject([{ id: "late" }]);
});

test("doesn't believe a waking clock that runs ahead of the database's", async () => {
  const behindMs = 2_000;
  const databaseNow = () => Promise.resolve(new Date(Date.now() - behindMs));
  const { due, deadline, end } = leases(NEVER_MS, databaseNow);
  const deadlines = start(deadline, { databaseNow });
  const at = inMs(300);
  due.set("lease-1", at);
  await deadlines.arm("lease-expiry", at);
  const [lease] = await end(1);
  expect(lease?.at).toBeGreaterThanOrEqual(at.getTime() + behindMs);
  expect(await jobs()).toHaveLength(1);
});

test("finds by its sweep what Redis forgot", async () => {
  const server = await startRedis();
  const wiped = redisBackend({ url: server.url, prefix: "wiped", logger });
  const { due, deadline, end } = leases(1_000);
  const deadlines = start(deadline, { to: wiped });
  const at = inMs(1_500);
  due.set("lease-1", at);
  await deadlines.arm("lease-expiry", at);
  const redis = new Redis(server.url);
  await redis.flushall();
  expect(await redis.dbsize()).toBe(0);
  await redis.quit();
  const [lease] = await end(1);
  expect(lease?.at).toBeLessThan(at.getTime() + 2_000 + BUSY_MS);
  await deadlines.stop();
  await wiped.close();
  await server.stop();
});

test("goes on by its sweep while Redis is away, and arming fails nobody", async () => {
  const server = await startRedis();
  await server.stop();
  const away = redisBackend({ url: server.url, prefix: "away", logger });
  const { due, deadline, end } = leases(500);
  const deadlines = start(deadline, { to: away });
  due.set("lease-1", inMs(1_000));
  await deadlines.arm("lease-expiry", inMs(1_000));
  expect(await end(1)).toMatchObject([{ id: "lease-1" }]);
  await deadlines.stop();
  await away.close();
});

test("never runs one kind twice at a time, and takes batch after batch", async () => {
  let running = 0;
  let overlapped = false;
  let batches = 0;
  const deadlines = start({
    kind: "slow",
    sweepEveryMs: 100,
    async run() {
      running += 1;
      overlapped ||= running > 1;
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      batches += 1;
      return { ended: [], more: batches < 5 };
    },
  });
  await Promise.all(Array.from({ length: 20 }, () => deadlines.arm("slow", inMs(-2_000))));
  expect(batches).toBeGreaterThanOrEqual(5);
  expect(overlapped).toBe(false);
});
