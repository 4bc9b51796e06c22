import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { startWorkQueue, type WorkQueue } from "@runtime-cloud/eventing/queues/work-queue";
import { WorkerStopping } from "@runtime-cloud/eventing/queues/worker-stopping";
import { until } from "@runtime-cloud/local-servers/until";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { z } from "zod";
import { testRedis } from "../_support/redis.ts";

const logger = silentLogger();
const data = z.object({ turn: z.number() });

let backend: QueueBackend;
beforeEach(async () => {
  backend = redisBackend({ ...testRedis(), logger });
  // Adding waits for a connection no longer than a service may.
  await backend.queue("test.work").waitUntilReady();
});
afterEach(() => backend.close());

function start(handle: (data: { turn: number }, signal: AbortSignal) => Promise<unknown>): WorkQueue<{ turn: number }> {
  return startWorkQueue({ name: "test.work", backend, concurrency: 2, data, handle, logger });
}

test("does work once while it waits, and once more when asked during it", async () => {
  const done: number[] = [];
  let release = (): void => undefined;
  const work = start(async ({ turn }) => {
    done.push(turn);
    if (turn === 1) await new Promise<void>((resolve) => (release = resolve));
  });
  await work.enqueue("run-1", { turn: 1 });
  await until("the first turn", 10_000, () => done[0]);
  await work.enqueue("run-1", { turn: 2 });
  await work.enqueue("run-1", { turn: 3 });
  release();
  await until("one more turn", 10_000, () => done[1]);
  await work.close();
  expect(done).toEqual([1, 3]);
});

test("does the same work again when it is asked for after it was done", async () => {
  const done: number[] = [];
  const work = start(({ turn }) => Promise.resolve(done.push(turn)));
  const queue = backend.queue("test.work");
  for (const turn of [1, 2]) {
    await work.enqueue("run-1", { turn });
    await until("it is done", 10_000, async () => ((await queue.getCompletedCount()) === turn ? true : undefined));
  }
  await work.close();
  expect(done).toEqual([1, 2]);
});

test("gives aborted work back to the queue when it stops, for another worker", async () => {
  let running = false;
  let reason: unknown;
  const first = start(async (_data, signal) => {
    running = true;
    await new Promise((_resolve, reject) =>
      signal.addEventListener("abort", () => {
        reason = signal.reason;
        reject(new Error("stopped"));
      }),
    );
  });
  await first.enqueue("run-1", { turn: 7 });
  await until("it runs", 10_000, () => running || undefined);
  await first.close();
  expect(reason).toBeInstanceOf(WorkerStopping);

  const done: number[] = [];
  const second = start(({ turn }) => Promise.resolve(done.push(turn)));
  await until("another worker does it", 10_000, () => done[0]);
  await second.close();
  expect(done).toEqual([7]);
});

test("lets go of work that outlives the grace", async () => {
  let release = (): void => undefined;
  let started = false;
  const stubborn = start(() => {
    started = true;
    return new Promise<void>((resolve) => (release = resolve));
  });
  await stubborn.enqueue("run-1", { turn: 1 });
  await until("it runs", 10_000, () => started || undefined);
  const asked = performance.now();
  await stubborn.close(300);
  // It never ends by itself; the grace unless another is asked for is longer.
  expect(performance.now() - asked).toBeLessThan(8_000);
  release();
});

test("refuses data of another shape than it was started for", async () => {
  const work = start(() => Promise.resolve());
  await backend.add("test.work", [{ name: "run-1", data: { turn: "one" } }]);
  const [failed] = await until("it is parked", 10_000, async () => {
    const jobs = await backend.queue("test.work").getFailed();
    return jobs.length > 0 ? jobs : undefined;
  });
  expect(failed?.failedReason).toMatch(/^internal error/);
  await work.close();
});
