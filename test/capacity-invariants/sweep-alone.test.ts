import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { databaseNow } from "@runtime-cloud/eventing/database-clock";
import { type Deadlines, deadlinesOf, startDeadlines } from "@runtime-cloud/eventing/deadlines";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { deadlines } from "@runtime-cloud/execution-capacity/deadlines";
import { until } from "@runtime-cloud/local-servers/until";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { attempt, type CapacityService, startCapacity, staticPool } from "../_support/execution-capacity.ts";
import { testRedis } from "../_support/redis.ts";

const SERVICE = "execution-capacity";
const TENANT = "tenant-a";
const HOLDERS = 20;
const SLACK_MS = 1_000;
const TEST_MS = 60_000;

let service: CapacityService;
let backend: QueueBackend;
let sweeps: Deadlines;
/** How often the slowest of them looks. */
let sweepMs: number;

beforeAll(async () => {
  service = await startCapacity();
  const { context, desk } = service;
  const logger = silentLogger();
  backend = redisBackend({ ...testRedis(), logger });
  const all = deadlines(context, desk).filter(({ kind }) => ENDING.test(kind));
  sweepMs = Math.max(...all.map(({ sweepEveryMs }) => sweepEveryMs));
  // First of all: what the client loads at its first use is loaded by a test's own call.
  await openPools(service);
  // Nobody arms them: every wake-up is lost.
  sweeps = startDeadlines({
    ...{ service: SERVICE, backend, deadlines: all, logger, clock: systemClock },
    databaseNow: () => databaseNow(context.pool),
  });
});
afterAll(async () => {
  await sweeps.stop();
  await backend.queue(deadlinesOf(SERVICE)).obliterate({ force: true });
  await backend.close();
  await service.close();
});

/** What ends leases, waits, cordons and drains; not what asks for sizes. */
const ENDING = /^(?!pool-resize)/;

test(
  "with every wake-up lost, leases, waits, cordons and drains end by the sweep alone, no later than it and a second",
  async () => {
    const tenant = service.as(TENANT);
    const brief = { ttl: { seconds: 1n } };
    const waiting = { wait: { seconds: 1n }, ttl: { seconds: 60n } };
    await Promise.all([
      ...Array.from({ length: HOLDERS }, () => tenant.acquireLease(attempt("leased", brief))),
      ...Array.from({ length: HOLDERS }, () => tenant.acquireLease(attempt("drained"))),
    ]);
    await tenant.cordonPool({ poolId: "paused", resumeAfter: { seconds: 1n } });
    await Promise.all(
      Array.from({ length: HOLDERS }, () => tenant.acquireLease(attempt("paused", brief))).map(refused),
    );
    await Promise.all(Array.from({ length: HOLDERS }, () => tenant.acquireLease(attempt("drained", waiting))));
    await tenant.drainPool({ poolId: "drained", within: { seconds: 1n } });

    await until("the sweep to end all of it", TEST_MS / 2, async () => {
      const live = await service.database.capacityLease.count({ where: { state: { in: ["ACTIVE", "WAITING"] } } });
      const pools = await service.database.workerPool.findMany({ where: { state: { in: ["DRAINING", "CORDONED"] } } });
      return (live === 0 && pools.length === 0) || undefined;
    });

    const [late] = await service.database.$queryRaw<{ ended: number; latenessMs: number }[]>`
      SELECT count(*)::int AS ended, (1000 * max(extract(epoch FROM ended_at - coalesce(
        CASE state WHEN 'CANCELLED' THEN wait_deadline WHEN 'EXPIRED' THEN expires_at END,
        (SELECT drain_deadline FROM worker_pool WHERE id = 'drained')))))::float AS "latenessMs"
      FROM capacity_lease`;
    expect(late?.ended).toBe(3 * HOLDERS);
    expect(late?.latenessMs).toBeLessThanOrEqual(sweepMs + SLACK_MS);
    expect(await service.differences()).toEqual([]);
  },
  TEST_MS,
);

async function openPools({ as }: CapacityService): Promise<void> {
  for (const pool of ["leased", "drained", "paused"]) await as(TENANT).setWorkerPool(staticPool(pool, HOLDERS));
}

/** A cordoned pool takes nobody who won't wait. */
async function refused(call: Promise<unknown>): Promise<void> {
  await expect(call).rejects.toThrow();
}
