import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { LeaseState, PoolKind, WaitReason } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { leaseExpiry, waitOver } from "@runtime-cloud/execution-capacity/desk/overdue-leases";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { testDatabase, type TestDatabase } from "../../_support/database.ts";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  patiently,
  runOut,
  startCapacity,
  staticPool,
} from "../../_support/execution-capacity.ts";

let database: TestDatabase;
let service: CapacityService;
/** Another process on the same database. */
let another: CapacityService;
let tenantId: string;
let tenant: CapacityClient;

beforeAll(async () => {
  database = await testDatabase("execution-capacity");
  service = await startCapacity({ database });
  another = await startCapacity({ database });
});
afterAll(async () => {
  await service.close();
  await another.close();
  await database.drop();
});
beforeEach(() => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
});
afterEach(async () => {
  expect(await service.differences()).toEqual([]);
});

/** Acquires with patience, and gives the lease's id. */
async function wanted(poolId: string, changes: Parameters<typeof attempt>[1] = {}): Promise<string> {
  const { lease } = await tenant.acquireLease(attempt(poolId, { ...patiently, ...changes }));
  return lease?.leaseId ?? "";
}
const leaseOf = async (leaseId: string) => (await tenant.getLease({ leaseId })).lease;
const stateOf = async (leaseId: string) => LeaseState[(await leaseOf(leaseId))?.state ?? 0];
const exceeded = async () => (await service.announced(tenantId)).filter(({ event }) => event === "QuotaExceeded");

test("grants the waiter in the releasing transaction, with a larger fencing token", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const holder = await wanted("build");
  const waiter = await wanted("build");
  expect((await leaseOf(waiter))?.waiting).toMatchObject({ reason: WaitReason.POOL_FULL, position: 1 });
  await tenant.releaseLease({ leaseId: holder });
  expect(await stateOf(waiter)).toBe("ACTIVE");
  expect((await leaseOf(waiter))?.fencingToken).toBeGreaterThan((await leaseOf(holder))?.fencingToken ?? 0n);
  const written = await service.database.$queryRaw<{ transactions: bigint }[]>`
    SELECT count(DISTINCT xmin::text) AS transactions FROM transition
    WHERE (aggregate_id = ${holder} AND event = 'release') OR (aggregate_id = ${waiter} AND event = 'grant')`;
  expect(written).toEqual([{ transactions: 1n }]);
});

test("tells a holder that its quota blocks why and where it waits, and announces that once", async () => {
  await tenant.setWorkerPool(staticPool("build", 5));
  await tenant.setQuota({ concurrentRuns: 2, concurrentSandboxes: 0 });
  const [first, second] = [await wanted("build"), await wanted("build")];
  const blocked = attempt("build", patiently);
  const { lease, ttl } = await tenant.acquireLease(blocked);
  expect(ttl).toBeUndefined();
  expect(lease?.state).toBe(LeaseState.WAITING);
  expect(lease?.waiting).toMatchObject({ reason: WaitReason.TENANT_QUOTA, position: 1 });
  expect(lease?.waiting?.waitDeadline).toBeDefined();

  const again = await tenant.acquireLease(blocked);
  await tenant.setQuota({ concurrentRuns: 1, concurrentSandboxes: 0 });
  await tenant.releaseLease({ leaseId: first });
  expect(again.lease?.leaseId).toBe(lease?.leaseId);
  expect((await exceeded()).map(({ data }) => data)).toEqual([
    { tenantId, projectId: "p1", holderKind: "Attempt", holderId: blocked.holderId, limit: "concurrentRuns=2" },
  ]);
  await tenant.releaseLease({ leaseId: second });
  expect(await stateOf(lease?.leaseId ?? "")).toBe("ACTIVE");
});

test("announces a quota that blocks a holder only once it comes up", async () => {
  await tenant.setWorkerPool(staticPool("build", 2));
  const [first] = [await wanted("build"), await wanted("build")];
  await wanted("build");
  expect(await exceeded()).toEqual([]);
  await tenant.setQuota({ projectId: "p1", concurrentRuns: 1, concurrentSandboxes: 0 });
  await tenant.releaseLease({ leaseId: first });
  expect((await exceeded()).map(({ data }) => data["limit"])).toEqual(["concurrentRuns=1"]);
});

test("serves by priority, then by arrival", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const holder = await wanted("build");
  const early = await wanted("build");
  const late = await wanted("build");
  const urgent = await wanted("build", { priority: 9 });
  expect((await leaseOf(urgent))?.waiting?.position).toBe(1);
  expect((await leaseOf(late))?.waiting?.position).toBe(3);
  for (const [leaseId, next] of [
    [holder, urgent],
    [urgent, early],
    [early, late],
  ] as const) {
    await tenant.releaseLease({ leaseId });
    expect(await stateOf(next)).toBe("ACTIVE");
  }
});

test("lets nobody overtake a large request that the pool is too full for", async () => {
  await tenant.setWorkerPool(staticPool("build", 3));
  const [first, second] = [await wanted("build"), await wanted("build")];
  const large = await wanted("build", { units: 3 });
  const small = await wanted("build");
  expect((await leaseOf(small))?.waiting).toMatchObject({ reason: WaitReason.POOL_FULL, position: 2 });
  await tenant.releaseLease({ leaseId: first });
  expect([await stateOf(large), await stateOf(small)]).toEqual(["WAITING", "WAITING"]);
  await tenant.releaseLease({ leaseId: second });
  expect([await stateOf(large), await stateOf(small)]).toEqual(["ACTIVE", "WAITING"]);
});

test("passes over a project that its own quota blocks, whole, and serves the others", async () => {
  await tenant.setWorkerPool(staticPool("build", 4));
  await tenant.setQuota({ projectId: "busy", concurrentRuns: 2, concurrentSandboxes: 0 });
  const held = await wanted("build", { projectId: "busy" });
  const large = await wanted("build", { projectId: "busy", units: 2 });
  const small = await wanted("build", { projectId: "busy" });
  const other = await wanted("build", { projectId: "idle" });
  expect(await stateOf(other)).toBe("ACTIVE");
  expect([await stateOf(large), await stateOf(small)]).toEqual(["WAITING", "WAITING"]);
  expect((await leaseOf(large))?.waiting?.reason).toBe(WaitReason.PROJECT_QUOTA);
  await tenant.releaseLease({ leaseId: held });
  expect([await stateOf(large), await stateOf(small)]).toEqual(["ACTIVE", "WAITING"]);
});

test("grants in another pool what a release frees of the tenant's quota", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  await tenant.setWorkerPool(staticPool("test", 1));
  await tenant.setQuota({ concurrentRuns: 1, concurrentSandboxes: 0 });
  const holder = await wanted("build");
  const waiter = await wanted("test");
  expect(await stateOf(waiter)).toBe("WAITING");
  await tenant.releaseLease({ leaseId: holder });
  expect(await stateOf(waiter)).toBe("ACTIVE");
});

test("grants to the waiters when a quota is raised or retired, or a pool grown or uncordoned", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { quota } = await tenant.setQuota({ concurrentRuns: 0, concurrentSandboxes: 0 });
  const leases: string[] = [];
  for (let count = 0; count < 4; count += 1) leases.push(await wanted("build"));
  const states = () => Promise.all(leases.map(stateOf)).then((all) => all.filter((state) => state === "ACTIVE").length);
  await tenant.setQuota({ concurrentRuns: 2, concurrentSandboxes: 0 });
  expect(await states()).toBe(1);
  await tenant.setWorkerPool(staticPool("build", 3));
  expect(await states()).toBe(2);
  await tenant.retireQuota({ quotaId: quota?.quotaId ?? "" });
  expect(await states()).toBe(3);
  await tenant.cordonPool({ poolId: "build", note: "disk swap" });
  await tenant.setWorkerPool(staticPool("build", 4));
  expect(await states()).toBe(3);
  expect((await leaseOf(leases[3] ?? ""))?.waiting?.reason).toBe(WaitReason.POOL_NOT_ACCEPTING);
  await tenant.uncordonPool({ poolId: "build" });
  expect(await states()).toBe(4);
});

test("withdraws a holder whose patience is over, announces nothing of it, and serves those behind it", async () => {
  await tenant.setWorkerPool(staticPool("build", 2));
  await wanted("build");
  const impatient = await wanted("build", { units: 2 });
  const behind = await wanted("build");
  expect([await stateOf(impatient), await stateOf(behind)]).toEqual(["WAITING", "WAITING"]);
  expect(service.armed.at(-1)).toMatchObject({ kind: "wait-over", label: { pool: "build" } });
  await service.database.$executeRaw`
    UPDATE capacity_lease SET wait_deadline = clock_timestamp(), due_at = clock_timestamp()
    WHERE id = ${impatient}::uuid`;
  expect(await runOut(waitOver(service.context, service.desk))).toEqual([impatient]);
  expect([await stateOf(impatient), await stateOf(behind)]).toEqual(["CANCELLED", "ACTIVE"]);
  expect((await service.announced(tenantId)).map(({ event }) => event)).not.toContain("CapacityLeaseReleased");
});

test("withdraws a waiting lease that its holder releases", async () => {
  await tenant.setWorkerPool(staticPool("build", 0));
  const leaseId = await wanted("build");
  expect((await tenant.releaseLease({ leaseId })).lease?.state).toBe(LeaseState.CANCELLED);
  expect((await tenant.releaseLease({ leaseId })).lease?.state).toBe(LeaseState.CANCELLED);
});

test("lets nobody wait in a pool that has too few slots for it, whatever it selects by", async () => {
  const labels = { zone: "a" };
  await tenant.setWorkerPool({ ...staticPool("small", 1), labels });
  await tenant.setWorkerPool({ ...staticPool("large", 5), labels });
  await tenant.acquireLease(attempt("large"));
  const { poolId: _, ...anywhere } = attempt("large", { units: 5, ...patiently });
  const { lease } = await tenant.acquireLease({ ...anywhere, selector: { kind: PoolKind.RUN_WORKERS, labels } });
  expect(lease).toMatchObject({ state: LeaseState.WAITING, poolId: "large" });
  expect((await tenant.acquireLease(attempt("small"))).lease?.state).toBe(LeaseState.ACTIVE);
});

test("doesn't answer a pool with a lease that waits by a selector, and may yet be granted in another one", async () => {
  const labels = { zone: "a" };
  for (const poolId of ["first", "second"]) {
    await tenant.setWorkerPool({ ...staticPool(poolId, 1), labels });
    await tenant.acquireLease(attempt(poolId));
  }
  const { poolId: _, ...anywhere } = attempt("first", patiently);
  const asked = { ...anywhere, selector: { kind: PoolKind.RUN_WORKERS, labels } };
  const { lease } = await tenant.acquireLease(asked);
  const there = tenant.acquireLease({ ...anywhere, poolId: lease?.poolId ?? "" });
  await expect(there).rejects.toThrow("waits by a selector: ask for that again");
  expect((await tenant.acquireLease(asked)).lease?.leaseId).toBe(lease?.leaseId);
});

test("serves those behind a waiter for whom the pool, or the quota, has become too small", async () => {
  await tenant.setWorkerPool(staticPool("build", 3));
  const holder = await wanted("build", { units: 2 });
  const large = await wanted("build", { units: 3 });
  const small = await wanted("build", { projectId: "p2" });
  await tenant.setWorkerPool(staticPool("build", 1));
  await tenant.releaseLease({ leaseId: holder });
  expect([await stateOf(large), await stateOf(small)]).toEqual(["WAITING", "ACTIVE"]);
  await tenant.setQuota({ concurrentRuns: 2, concurrentSandboxes: 0 });
  await tenant.setWorkerPool(staticPool("build", 5));
  expect(await stateOf(await wanted("build", { projectId: "p2" }))).toBe("ACTIVE");
  await tenant.setQuota({ concurrentRuns: 5, concurrentSandboxes: 0 });
  expect(await stateOf(large)).toBe("ACTIVE");
});

test("answers a holder its lease again when the pool has lost the labels that it selected by", async () => {
  const labels = { zone: "b" };
  await tenant.setWorkerPool({ ...staticPool("build", 1), labels });
  const { poolId: _, ...anywhere } = attempt("build", patiently);
  const request = { ...anywhere, selector: { kind: PoolKind.RUN_WORKERS, labels } };
  const { lease } = await tenant.acquireLease(request);
  await tenant.setWorkerPool(staticPool("build", 1));
  expect((await tenant.acquireLease(request)).lease?.leaseId).toBe(lease?.leaseId);
});

test("withdraws those who wait for a pool that is drained", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const holder = await wanted("build");
  const waiter = await wanted("build");
  await tenant.drainPool({ poolId: "build", within: { seconds: 60n } });
  await tenant.releaseLease({ leaseId: holder });
  expect(await runOut(waitOver(service.context, service.desk))).toEqual([waiter]);
  expect(await stateOf(waiter)).toBe("CANCELLED");
});

test("serves who stood behind a waiter that another pool has taken", async () => {
  const labels = { zone: "z" };
  await tenant.setWorkerPool({ ...staticPool("first", 3), labels });
  await tenant.setWorkerPool({ ...staticPool("second", 2), labels });
  await wanted("first", { units: 2 });
  const other = await wanted("second", { units: 2 });
  const { poolId: _, ...anywhere } = attempt("first", { units: 2, ...patiently });
  const { lease } = await tenant.acquireLease({ ...anywhere, selector: { kind: PoolKind.RUN_WORKERS, labels } });
  const behind = await wanted("first");
  expect([lease?.state, await stateOf(behind)]).toEqual([LeaseState.WAITING, "WAITING"]);
  await tenant.releaseLease({ leaseId: other });
  expect(await leaseOf(lease?.leaseId ?? "")).toMatchObject({ state: LeaseState.ACTIVE, poolId: "second" });
  expect(await stateOf(behind)).toBe("ACTIVE");
});

test("an overdue lease that somebody else's acquire finds isn't ended behind the back of who waits for its quota", async () => {
  const shared = `shared-${uuidv7()}`;
  await tenant.setWorkerPool({ ...staticPool(shared, 5), shared: true });
  await tenant.setWorkerPool(staticPool("own", 5));
  await tenant.setQuota({ concurrentRuns: 1, concurrentSandboxes: 0 });
  const overdue = await wanted(shared);
  await service.database.$executeRaw`
    UPDATE capacity_lease SET expires_at = clock_timestamp(), due_at = clock_timestamp() WHERE id = ${overdue}::uuid`;

  const connection = await service.context.pool.connect();
  await connection.query("BEGIN");
  await connection.query("SELECT FROM scope_usage WHERE tenant_id = $1 FOR UPDATE", [tenantId]);
  const blocked = (count: number) =>
    until(`${count} at the tenant's lock`, 20_000, async () => {
      const { rowCount } = await service.context.pool.query(AT_A_LOCK);
      return rowCount === count || undefined;
    });
  const waiting = wanted("own");
  await blocked(1);
  const other = another.as(`other-${uuidv7()}`).acquireLease(attempt(shared));
  await blocked(2);
  await connection.query("COMMIT");
  connection.release();

  expect((await other).lease?.state).toBe(LeaseState.ACTIVE);
  expect([await stateOf(overdue), await stateOf(await waiting)]).toEqual(["ACTIVE", "WAITING"]);
  await runOut(leaseExpiry(service.context, service.desk));
  expect([await stateOf(overdue), await stateOf(await waiting)]).toEqual(["EXPIRED", "ACTIVE"]);
});

const AT_A_LOCK = `SELECT FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%capacity_open%'`;
