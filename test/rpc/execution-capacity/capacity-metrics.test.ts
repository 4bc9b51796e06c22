import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startService } from "@runtime-cloud/eventing/start-service";
import { startCapacityCheck } from "@runtime-cloud/execution-capacity/capacity/capacity-check";
import { registerCapacityMetrics } from "@runtime-cloud/execution-capacity/capacity/capacity-metrics";
import { registerDeskMetrics } from "@runtime-cloud/execution-capacity/desk/desk-metrics";
import { openLeaseDesk } from "@runtime-cloud/execution-capacity/desk/lease-desk";
import type { AcquireOperation } from "@runtime-cloud/execution-capacity/desk/lease-operation";
import { executionCapacity } from "@runtime-cloud/execution-capacity/definition";
import { readConfig } from "@runtime-cloud/service-kit/config";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { Registry } from "prom-client";
import {
  attempt,
  type CapacityService,
  patiently,
  startCapacity,
  staticPool,
} from "../../_support/execution-capacity.ts";
import { testRedis } from "../../_support/redis.ts";

let service: CapacityService;

beforeAll(async () => {
  service = await startCapacity();
});
afterAll(() => service.close());

test("slots, use and waiters are summed by kind and state, whosever pools they are", async () => {
  const registry = new Registry();
  registerCapacityMetrics(service.context, registry);
  for (let count = 0; count < 2; count++) {
    const tenant = service.as(`tenant-${uuidv7()}`);
    await tenant.setWorkerPool(staticPool("build", 3));
    await tenant.acquireLease(attempt("build", { units: 3 }));
    await tenant.acquireLease(attempt("build", patiently));
    await tenant.setWorkerPool(staticPool("build", 2));
  }
  await service.as("another").setWorkerPool(staticPool("spare", 5));
  await service.as("another").cordonPool({ poolId: "spare" });
  const metrics = await registry.metrics();
  const active = '{kind="RUN_WORKERS",state="ACTIVE"}';
  for (const line of [
    ...[`capacity_pools${active} 2`, `capacity_pool_slots${active} 4`, `capacity_pool_slots_used${active} 6`],
    ...[`capacity_pool_slots_over${active} 2`, `capacity_waiting${active} 2`],
    'capacity_pool_slots{kind="RUN_WORKERS",state="CORDONED"} 5',
  ]) {
    expect(metrics.split("\n")).toContain(line);
  }
});

test("the desk's batches are counted by how they were decided", async () => {
  const registry = new Registry();
  const desk = openLeaseDesk(service.context, registerDeskMetrics(registry));
  const tenantId = `tenant-${uuidv7()}`;
  await service.as(tenantId).setWorkerPool(staticPool("build", 10));
  for (let count = 0; count < 3; count++) await desk.submit(acquire(tenantId, `attempt-${count}`));
  const lines = (await registry.metrics()).split("\n");
  expect(lines).toContain('lease_batch_operations_count{way="locked"} 2');
  expect(lines).toContain('lease_batch_operations_count{way="remembered"} 1');
  expect(lines).toContain('lease_batch_seconds_count{way="remembered"} 1');
});

test("the check counts the counters that differ from their leases: none, unless somebody meddled with them", async () => {
  expect(await checked()).toContain("capacity_differences 0");
  const tenantId = `tenant-${uuidv7()}`;
  const tenant = service.as(tenantId);
  await tenant.setWorkerPool(staticPool("build", 3));
  await tenant.acquireLease(attempt("build"));
  await service.database.$executeRaw`UPDATE worker_pool SET used = used + 1 WHERE tenant_id = ${tenantId}`;
  const metrics = await checked();
  expect(metrics).toContain("capacity_differences 1");
  expect(metrics).toContain('capacity_checks_total{outcome="different"} 1');
});

test("a started service shows them on its admin server", async () => {
  const redis = testRedis();
  const folder = await mkdtemp(join(tmpdir(), "capacity-metrics-"));
  const config = readConfig(executionCapacity.settings, {
    DATABASE_URL: service.context.settings.DATABASE_URL,
    REDIS_URL: redis.url,
    QUEUE_PREFIX: redis.prefix,
    SUBSCRIBERS: "ExecutionCapacityService",
    LOCAL_ISSUER_FILE: join(folder, "issuer.json"),
    PORT: "0",
    ADMIN_PORT: "0",
  });
  const running = await startService(executionCapacity, config, silentLogger());
  try {
    const response = await fetch(new URL("/metrics", running.adminUrl));
    const metrics = await response.text();
    for (const name of ["capacity_pools", "capacity_differences", "capacity_retention_rows_total"]) {
      expect(metrics).toContain(`# TYPE ${name} `);
    }
  } finally {
    await running.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

/** The metrics after one check. */
async function checked(): Promise<string> {
  const registry = new Registry();
  const check = startCapacityCheck(service.context, registry);
  await check.stop();
  return registry.metrics();
}

function acquire(tenantId: string, holderId: string): AcquireOperation {
  return {
    ...{ kind: "acquire", tenantId, projectId: "p1", holderKind: "Attempt", holderId, target: { poolId: "build" } },
    ...{ resource: undefined, units: 1, priority: 0, ttlMs: 60_000, waitMs: 0 },
    cause: { actor: "test", correlationId: uuidv7() },
  };
}
