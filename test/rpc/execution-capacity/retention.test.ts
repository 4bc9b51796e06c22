import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { LeaseState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { removeAll } from "@runtime-cloud/eventing/event-log/retention";
import { removeIdleFlows } from "@runtime-cloud/execution-capacity/queue/idle-flows";
import { startLeaseRetention } from "@runtime-cloud/execution-capacity/leases/lease-retention";
import { BATCH, forgetHolders, moveEnded, removePast } from "@runtime-cloud/execution-capacity/leases/past-leases";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { Registry } from "prom-client";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  startCapacity,
  staticPool,
} from "../../_support/execution-capacity.ts";

let service: CapacityService;
let tenantId: string;
let tenant: CapacityClient;

beforeAll(async () => {
  service = await startCapacity();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  await tenant.setWorkerPool(staticPool("build", 10));
});

const never = new AbortController().signal;
const retain = (hours: number) => removeAll(() => moveEnded(service.context.pool, hours), never);
const kept = async () => ({
  live: await service.database.capacityLease.count({ where: { tenantId } }),
  past: await service.database.pastLease.count({ where: { tenantId } }),
});

async function held(): Promise<string> {
  const { lease } = await tenant.acquireLease(attempt("build"));
  return lease?.leaseId ?? "";
}

/** A lease that ended that many hours ago. */
async function endedLease(hoursAgo: number): Promise<string> {
  const leaseId = await held();
  await tenant.releaseLease({ leaseId });
  await service.database.$executeRaw`
    UPDATE capacity_lease SET ended_at = clock_timestamp() - make_interval(hours => ${hoursAgo}::int)
    WHERE tenant_id = ${tenantId} AND id = ${leaseId}::uuid`;
  return leaseId;
}

test("a lease that ended long ago is kept apart, whole, and answered as before", async () => {
  const leaseId = await endedLease(25);
  const { lease: before } = await tenant.getLease({ leaseId });
  await retain(24);
  expect(await kept()).toEqual({ live: 0, past: 1 });
  expect((await tenant.getLease({ leaseId })).lease).toEqual(before);
  expect((await tenant.releaseLease({ leaseId })).lease).toEqual(before);
  await expect(service.as("somebody-else").getLease({ leaseId })).rejects.toMatchObject({ code: Code.NotFound });
});

test("what lives, and what ended a while ago, stays where it is", async () => {
  await held();
  await endedLease(23);
  await retain(24);
  expect(await kept()).toEqual({ live: 2, past: 0 });
});

test("ListLeases gives the newest first, whether they are live or kept apart", async () => {
  const leases = [await endedLease(30), await held(), await endedLease(30), await endedLease(1)];
  await retain(24);
  expect(await kept()).toEqual({ live: 2, past: 2 });
  const listed: string[] = [];
  let pageToken = "";
  do {
    const page = await tenant.listLeases({ pageSize: 1, pageToken });
    listed.push(...page.leases.map(({ leaseId }) => leaseId));
    pageToken = page.nextPageToken;
  } while (pageToken);
  expect(listed).toEqual(leases.toReversed());
  const ended = await tenant.listLeases({ state: LeaseState.RELEASED });
  expect(ended.leases.map(({ leaseId }) => leaseId)).toEqual([leases[3], leases[2], leases[0]]);
  const active = await tenant.listLeases({ state: LeaseState.ACTIVE });
  expect(active.leases.map(({ leaseId }) => leaseId)).toEqual([leases[1]]);
});

test("ListLeases finds all leases of a holder", async () => {
  const request = attempt("build");
  const { lease } = await tenant.acquireLease(request);
  await held();
  await tenant.releaseLease({ leaseId: lease?.leaseId ?? "" });
  await retain(0);
  const { holderKind, holderId } = request;
  const { leases } = await tenant.listLeases({ holderKind, holderId });
  expect(leases.map(({ leaseId }) => leaseId)).toEqual([lease?.leaseId]);
});

test("leases are moved and removed in batches, until none is left to", async () => {
  const wanted = await tenant.acquireLease(attempt("build"));
  const { pool } = service.context;
  await service.database.$executeRaw`
    INSERT INTO past_lease SELECT (past).* FROM (
      SELECT jsonb_populate_record(null::past_lease, to_jsonb(lease) || jsonb_build_object(
        'id', gen_random_uuid(), 'state', 'RELEASED', 'ended_at', clock_timestamp() - interval '40 days'
      )) AS past FROM capacity_lease lease, generate_series(1, ${BATCH + 1}::int)
      WHERE lease.tenant_id = ${tenantId} AND lease.id = ${wanted.lease?.leaseId}::uuid
    ) AS copies`;
  expect(await removePast(pool, 30)).toEqual({ removed: BATCH, next: 0n });
  expect(await removePast(pool, 30)).toEqual({ removed: 1, next: undefined });
  await tenant.releaseLease({ leaseId: wanted.lease?.leaseId ?? "" });
  expect(await kept()).toEqual({ live: 1, past: 0 });
});

test("two replicas share the work: what one has begun to move, the other leaves to it", async () => {
  const leaseId = await endedLease(30);
  const other = await service.context.pool.connect();
  try {
    await other.query("BEGIN");
    await other.query("SELECT FROM capacity_lease WHERE tenant_id = $1 AND id = $2 FOR UPDATE", [tenantId, leaseId]);
    await retain(24);
    expect(await kept()).toEqual({ live: 1, past: 0 });
  } finally {
    await other.query("ROLLBACK");
    other.release();
  }
  await retain(24);
  expect(await kept()).toEqual({ live: 0, past: 1 });
});

test("a holder that ended is remembered for its days, and no longer", async () => {
  const ended = (holderId: string, daysAgo: number) =>
    service.database.$executeRaw`
      INSERT INTO ended_holder (tenant_id, holder_kind, holder_id, ended_at)
      VALUES (${tenantId}, 'Attempt', ${holderId}, clock_timestamp() - make_interval(days => ${daysAgo}::int))`;
  await ended("recent", 29);
  await ended("forgotten", 31);
  await removeAll(() => forgetHolders(service.context.pool, 30), never);
  await expect(tenant.acquireLease(attempt("build", { holderId: "recent" }))).rejects.toMatchObject({
    code: Code.FailedPrecondition,
  });
  const { lease } = await tenant.acquireLease(attempt("build", { holderId: "forgotten" }));
  expect(lease?.state).toBe(LeaseState.ACTIVE);
});

test("a flow is removed once nobody waits in it and it is owed nothing, and not before", async () => {
  const { database, context } = service;
  await database.workerPool.update({
    where: { tenantId_id: { tenantId, id: "build" } },
    data: { virtualTime: 10 },
  });
  const flow = (of: string, projectId: string, waiting: number, virtualTime: number, innerTime = 0) => ({
    ...{ poolTenantId: tenantId, poolId: "build", tenantId: of, projectId, waiting, virtualTime, innerTime },
  });
  await database.fairShare.createMany({
    data: [
      ...[flow("waits", "", 1, 3, 5), flow("waits", "first", 1, 2), flow("waits", "behind", 0, 5)],
      ...[flow("waits", "ahead", 0, 6), flow("ahead", "", 0, 11), flow("ahead", "last", 0, 4, 3)],
      ...[flow("behind", "", 0, 10, 2), flow("behind", "ahead", 0, 9)],
    ],
  });
  await removeIdleFlows(context.pool, never);
  const left = await database.fairShare.findMany({
    where: { poolTenantId: tenantId },
    orderBy: [{ tenantId: "asc" }, { projectId: "asc" }],
  });
  expect(left.map(({ tenantId: of, projectId }) => `${of}/${projectId}`)).toEqual([
    ...["ahead/", "ahead/last", "waits/", "waits/ahead", "waits/first"],
  ]);
});

test("the sweep does all of it and counts what it did", async () => {
  await endedLease(30);
  const registry = new Registry();
  const retention = startLeaseRetention(service.context, registry);
  try {
    await expectEventually(async () => (await kept()).past === 1);
  } finally {
    await retention.stop();
  }
  const metrics = await registry.metrics();
  expect(metrics).toMatch(/capacity_retention_rows_total\{table="capacity_lease"\} [1-9]/);
});

async function expectEventually(condition: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 500; tries++) if (await condition()) return;
  throw new Error("the sweep never did it");
}
