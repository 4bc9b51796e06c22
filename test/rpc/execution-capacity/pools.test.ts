import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import {
  LeaseState,
  PoolKind,
  PoolScaling,
  PoolState,
  ReleaseReason,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { drainDeadline } from "@runtime-cloud/execution-capacity/pools/drain-deadline";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  patiently,
  runOut,
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
beforeEach(() => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
});
afterEach(async () => {
  expect(await service.differences()).toEqual([]);
});

const poolId = "build";
const code = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error).code,
  );
const changes = async () =>
  (await service.announced(tenantId))
    .filter(({ event }) => event === "WorkerPoolStateChanged")
    .map(({ data }) =>
      [data["fromState"], data["toState"], data["currentSize"]].map((it) => String(it).replace("POOL_STATE_", "")),
    );

test("creates a static pool with its size at once, changes it, and announces each change but no repeat", async () => {
  const request = { ...staticPool(poolId, 2), labels: { zone: "a" } };
  const { pool } = await tenant.setWorkerPool(request);
  expect(pool).toMatchObject({
    state: PoolState.ACTIVE,
    currentSize: 2,
    desiredSize: 2,
    generation: 1,
    labels: { zone: "a" },
  });
  await tenant.setWorkerPool({ ...request, labels: { zone: "b" } });
  await tenant.setWorkerPool({ ...request, size: 3, labels: {} });
  expect((await tenant.getWorkerPool({ poolId })).pool).toMatchObject({ currentSize: 3, generation: 2, labels: {} });
  expect(await changes()).toEqual([
    ["PROVISIONING", "PROVISIONING", "0"],
    ["PROVISIONING", "ACTIVE", "2"],
    ["ACTIVE", "ACTIVE", "3"],
  ]);
});

test("answers a command's repeat by its key as at first, and refuses the key for another request", async () => {
  const request = { ...staticPool(poolId, 2), idempotencyKey: "set-1" };
  const first = await tenant.setWorkerPool(request);
  await tenant.setWorkerPool(staticPool(poolId, 5));
  expect(await tenant.setWorkerPool(request)).toEqual(first);
  expect(await code(tenant.setWorkerPool({ ...request, size: 3 }))).toBe(Code.InvalidArgument);
});

test("names what is wrong with a pool", async () => {
  await tenant.setWorkerPool(staticPool(poolId, 2));
  const wrong = { poolId, size: 1, kind: PoolKind.SANDBOX_HOSTS, scaling: PoolScaling.ELASTIC };
  const error = await tenant.setWorkerPool(wrong).then(
    () => undefined,
    (thrown: unknown) => ConnectError.from(thrown),
  );
  expect(error?.code).toBe(Code.InvalidArgument);
  const [request] = error?.findDetails(BadRequestSchema) ?? [];
  expect(request?.fieldViolations.map(({ field }) => field)).toEqual(["environmentId", "programVersion", "kind"]);
  const labels = { ["x".repeat(64)]: "y" };
  expect(await code(tenant.setWorkerPool({ ...staticPool("other", 1), labels }))).toBe(Code.InvalidArgument);
});

test("accepts a size below its use, and grants nothing until the use has fallen below it", async () => {
  await tenant.setWorkerPool(staticPool(poolId, 3));
  const leases = [];
  for (let count = 0; count < 3; count += 1)
    leases.push((await tenant.acquireLease(attempt(poolId))).lease?.leaseId ?? "");
  expect((await tenant.setWorkerPool(staticPool(poolId, 1))).pool).toMatchObject({ currentSize: 1, used: 3 });
  for (const leaseId of leases.slice(1)) await tenant.releaseLease({ leaseId });
  expect(await code(tenant.acquireLease(attempt(poolId)))).toBe(Code.ResourceExhausted);
  await tenant.releaseLease({ leaseId: leases[0] ?? "" });
  expect(await code(tenant.acquireLease(attempt(poolId)))).toBeUndefined();
});

test("grants nothing in a cordoned pool, while its leases go on", async () => {
  await tenant.setWorkerPool(staticPool(poolId, 2));
  const { lease } = await tenant.acquireLease(attempt(poolId));
  const { pool } = await tenant.cordonPool({ poolId, note: "disk swap" });
  expect(pool).toMatchObject({ state: PoolState.CORDONED, note: "disk swap" });
  expect(await code(tenant.acquireLease(attempt(poolId)))).toBe(Code.ResourceExhausted);
  const { leaseId = "", fencingToken = 0n } = lease ?? {};
  const renewed = await tenant.renewLease({ leaseId, fencingToken, ttl: { seconds: 90n } });
  expect(renewed.ttl?.seconds).toBe(90n);
  const again = await tenant.cordonPool({ poolId, note: "two disks", resumeAfter: { seconds: 600n } });
  expect(again.pool).toMatchObject({ state: PoolState.CORDONED, note: "two disks", resumeAt: expect.anything() });
  expect((await tenant.uncordonPool({ poolId })).pool?.state).toBe(PoolState.ACTIVE);
});

test("caps renewals at the drain's deadline, and is drained by the last lease's end in its transaction", async () => {
  await tenant.setWorkerPool(staticPool(poolId, 2));
  const { lease } = await tenant.acquireLease(attempt(poolId));
  const { leaseId = "", fencingToken = 0n } = lease ?? {};
  const { pool } = await tenant.drainPool({ poolId, within: { seconds: 100n } });
  expect(pool?.state).toBe(PoolState.DRAINING);
  expect(service.armed.at(-1)).toMatchObject({ kind: "drain-deadline", label: { pool: poolId } });
  const renewed = await tenant.renewLease({ leaseId, fencingToken, ttl: { seconds: 500n } });
  expect(renewed.lease?.expiresAt).toEqual(pool?.drainDeadline);
  await tenant.releaseLease({ leaseId });
  expect((await tenant.getWorkerPool({ poolId })).pool?.state).toBe(PoolState.DRAINED);
  const written = await service.database.$queryRaw<{ transactions: bigint }[]>`
    SELECT count(DISTINCT xmin::text) AS transactions FROM transition
    WHERE tenant_id = ${tenantId} AND event IN ('release', 'empty')`;
  expect(written).toEqual([{ transactions: 1n }]);
});

test("revokes at a drain's deadline what is still leased", async () => {
  await tenant.setWorkerPool(staticPool(poolId, 2));
  const { lease } = await tenant.acquireLease(attempt(poolId));
  const { leaseId = "" } = lease ?? {};
  await tenant.drainPool({ poolId, within: { nanos: 200_000_000 } });
  await until(
    "the drain's deadline",
    5_000,
    async () => (await runOut(drainDeadline(service.context))).length || undefined,
  );
  const { lease: ended } = await tenant.getLease({ leaseId });
  expect(ended).toMatchObject({ state: LeaseState.REVOKED, releaseReason: ReleaseReason.DRAIN_DEADLINE });
  expect((await tenant.getWorkerPool({ poolId })).pool?.state).toBe(PoolState.DRAINED);
});

test("drains an unused pool at once and retires it; whoever waits for it is withdrawn", async () => {
  await tenant.setWorkerPool(staticPool(poolId, 0));
  const { lease } = await tenant.acquireLease(attempt(poolId, patiently));
  expect(await code(tenant.retirePool({ poolId }))).toBe(Code.FailedPrecondition);
  expect((await tenant.drainPool({ poolId, within: { seconds: 9n } })).pool?.state).toBe(PoolState.DRAINED);
  expect((await tenant.retirePool({ poolId })).pool?.state).toBe(PoolState.RETIRED);
  expect((await tenant.getLease({ leaseId: lease?.leaseId ?? "" })).lease?.state).toBe(LeaseState.CANCELLED);
  expect(await code(tenant.acquireLease(attempt(poolId, patiently)))).toBe(Code.FailedPrecondition);
  expect(await code(tenant.setWorkerPool(staticPool(poolId, 1)))).toBe(Code.FailedPrecondition);
  expect((await changes()).map(([, to]) => to)).toEqual(["PROVISIONING", "ACTIVE", "DRAINING", "DRAINED", "RETIRED"]);
});

test("moves a drain's deadline when it is drained again", async () => {
  await tenant.setWorkerPool(staticPool(poolId, 1));
  await tenant.acquireLease(attempt(poolId));
  const { pool: first } = await tenant.drainPool({ poolId, within: { seconds: 100n }, note: "rack 7" });
  const { pool: second } = await tenant.drainPool({ poolId, within: { seconds: 900n }, note: "rack 7, no hurry" });
  expect(second).toMatchObject({ state: PoolState.DRAINING, note: "rack 7, no hurry" });
  expect(second?.drainDeadline?.seconds).toBeGreaterThan(first?.drainDeadline?.seconds ?? 0n);
  expect((await changes()).map(([, to]) => to)).toEqual(["PROVISIONING", "ACTIVE", "DRAINING"]);
});

test("takes a drain back, and grants again", async () => {
  await tenant.setWorkerPool(staticPool(poolId, 2));
  await tenant.acquireLease(attempt(poolId));
  await tenant.drainPool({ poolId, within: { seconds: 100n } });
  const { lease } = await tenant.acquireLease(attempt(poolId, patiently));
  expect(lease?.state).toBe(LeaseState.WAITING);
  expect((await tenant.uncordonPool({ poolId })).pool?.drainDeadline).toBeUndefined();
  expect((await tenant.getLease({ leaseId: lease?.leaseId ?? "" })).lease?.state).toBe(LeaseState.ACTIVE);
});

test("lets other tenants lease in a shared pool, each under its own quota, and its owner alone change it", async () => {
  const shared = `shared-${uuidv7()}`;
  const guest = service.as(`guest-${uuidv7()}`);
  await tenant.setWorkerPool({ ...staticPool(shared, 2), shared: true });
  await guest.setQuota({ concurrentRuns: 1, concurrentSandboxes: 0 });
  const { lease: own } = await tenant.acquireLease(attempt(shared));
  await guest.acquireLease(attempt(shared));
  expect(await code(guest.acquireLease(attempt(shared)))).toBe(Code.ResourceExhausted);
  expect(await code(guest.drainPool({ poolId: shared, within: { seconds: 1n } }))).toBe(Code.NotFound);
  expect(await code(guest.setWorkerPool({ ...staticPool(shared, 9), shared: true }))).toBe(Code.InvalidArgument);

  await guest.setQuota({ concurrentRuns: 5, concurrentSandboxes: 0 });
  const { lease: waiting } = await guest.acquireLease(attempt(shared, patiently));
  await tenant.releaseLease({ leaseId: own?.leaseId ?? "" });
  expect((await guest.getLease({ leaseId: waiting?.leaseId ?? "" })).lease?.state).toBe(LeaseState.ACTIVE);
});

test("never over-commits a shared pool to tenants that acquire and release at once", async () => {
  const shared = `shared-${uuidv7()}`;
  await tenant.setWorkerPool({ ...staticPool(shared, 3), shared: true });
  const guests = Array.from({ length: 4 }, () => service.as(`guest-${uuidv7()}`));
  const leases = await Promise.all(
    guests.flatMap((guest) =>
      Array.from({ length: 3 }, async () => {
        const { lease } = await guest.acquireLease(attempt(shared, patiently));
        return () => guest.releaseLease({ leaseId: lease?.leaseId ?? "" });
      }),
    ),
  );
  const used = async () => (await tenant.getWorkerPool({ poolId: shared })).pool?.used;
  expect(await used()).toBe(3);
  await Promise.all(leases.slice(0, 6).map((release) => release()));
  expect(await used()).toBe(3);
  await Promise.all(leases.slice(6).map((release) => release()));
  expect(await used()).toBe(0);
});
