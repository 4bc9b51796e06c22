import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { ExplainCapacityResponse_Outcome as Outcome } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/usage_pb";
import {
  LeaseState,
  Placement,
  PoolKind,
  WaitReason,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  patiently,
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

type Acquire = Parameters<CapacityClient["acquireLease"]>[0];

/** What ExplainCapacity says, which is what AcquireLease then does. */
async function explained(acquire: Acquire, as = tenant) {
  const leasesBefore = (await as.listLeases({})).leases.length;
  const said = await as.explainCapacity({ acquire });
  expect((await as.listLeases({})).leases).toHaveLength(leasesBefore);
  const done = await as.acquireLease(acquire).catch((error: unknown) => ConnectError.from(error));
  const known = (await as.listLeases({})).leases.length === leasesBefore;
  expect(said.outcome).toBe(outcomeOf(done, known));
  if (!(done instanceof ConnectError) && said.outcome === Outcome.WAITS) {
    expect(said.pools.find(({ poolId }) => poolId === done.lease?.poolId)?.position).toBe(
      done.lease?.waiting?.position,
    );
  }
  if (!(done instanceof ConnectError) && said.outcome !== Outcome.WAITS) expect(said.poolId).toBe(done.lease?.poolId);
  return said;
}

type Done = ConnectError | Awaited<ReturnType<CapacityClient["acquireLease"]>>;

function outcomeOf(done: Done, known: boolean): Outcome {
  if (done instanceof ConnectError) return done.code === Code.ResourceExhausted ? Outcome.WAITS : Outcome.REFUSED;
  if (known) return Outcome.HELD;
  return done.lease?.state === LeaseState.ACTIVE ? Outcome.GRANTED : Outcome.WAITS;
}

function anyPool(changes: Parameters<typeof attempt>[1] = {}, labels = {}, placement = Placement.PACK): Acquire {
  const { poolId: _any, ...request } = attempt("", changes);
  return { ...request, selector: { kind: PoolKind.RUN_WORKERS, labels, placement } };
}

test("says which pool would grant it at once, with the numbers, and takes nothing", async () => {
  await tenant.setWorkerPool(staticPool("build", 4));
  await tenant.acquireLease(attempt("build"));
  const { outcome, explanation, poolId, pools, tenant: whole } = await explained(attempt("build", { units: 2 }));
  expect(outcome).toBe(Outcome.GRANTED);
  expect(explanation).toBe("pool build has 4 slots: 1 used, 2 wanted; it is granted at once");
  expect(poolId).toBe("build");
  expect(pools).toMatchObject([{ poolId: "build", size: 4, used: 1, waiting: 0, position: 1 }]);
  expect(pools[0]).not.toHaveProperty("reason");
  expect(whole).toMatchObject({ runs: { used: 1 }, waiting: 0 });
});

test("says how full a pool is and how many wait before", async () => {
  await tenant.setWorkerPool(staticPool("build", 4));
  await tenant.acquireLease(attempt("build", { units: 4 }));
  for (let count = 0; count < 3; count++) await tenant.acquireLease(attempt("build", patiently));
  const waiting = await explained(attempt("build", patiently));
  expect(waiting).toMatchObject({
    outcome: Outcome.WAITS,
    explanation: "pool build has 4 slots: 4 used, 1 wanted; 3 wait before you",
    pools: [{ reason: WaitReason.POOL_FULL, position: 4, waiting: 3 }],
    project: { projectId: "p1", runs: { used: 4 }, waiting: 3 },
  });
  const { explanation } = await explained(attempt("build"));
  expect(explanation).toContain("; 4 wait before you; the request names no wait, so it is refused");
});

test("says whose quota is in the way", async () => {
  await tenant.setWorkerPool(staticPool("build", 9));
  await tenant.setQuota({ concurrentRuns: 3, concurrentSandboxes: 0 });
  await tenant.setQuota({ projectId: "p1", concurrentRuns: 1, concurrentSandboxes: 0 });
  const outer = await explained(attempt("build", { projectId: "p2", units: 4, ...patiently }));
  expect(outer).toMatchObject({
    pools: [{ reason: WaitReason.TENANT_QUOTA }],
    explanation: `tenant:${tenantId} has concurrentRuns=3: 0 used, 4 wanted`,
  });
  const inner = await explained(attempt("build", { units: 2, ...patiently }));
  expect(inner).toMatchObject({
    pools: [{ reason: WaitReason.PROJECT_QUOTA }],
    explanation: expect.stringContaining("project:p1 has concurrentRuns=1: 0 used, 2 wanted"),
    project: { runs: { used: 0, limit: 1 } },
  });
});

test("one project's quota doesn't hold up another project that may wait", async () => {
  await tenant.setWorkerPool(staticPool("build", 4));
  await tenant.setQuota({ projectId: "p1", concurrentRuns: 1, concurrentSandboxes: 0 });
  await tenant.acquireLease(attempt("build"));
  await tenant.acquireLease(attempt("build", patiently));
  expect((await explained(attempt("build", patiently))).outcome).toBe(Outcome.WAITS);
  expect((await explained(attempt("build", { projectId: "p2", ...patiently }))).outcome).toBe(Outcome.GRANTED);
});

test("says until when a pool is cordoned", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  await tenant.cordonPool({ poolId: "build", resumeAfter: { seconds: 3_600n } });
  const { pools, explanation } = await explained(attempt("build", patiently));
  expect(pools).toMatchObject([{ reason: WaitReason.POOL_NOT_ACCEPTING }]);
  expect(explanation).toMatch(/^pool build is CORDONED.*; it goes on at \d{4}-\d\d-\d\dT/);
});

test("a holder's live lease is answered again", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const request = attempt("build");
  const { lease } = await tenant.acquireLease(request);
  const { outcome, explanation } = await explained(request);
  expect(outcome).toBe(Outcome.HELD);
  const holder = `Attempt ${request.holderId}`;
  expect(explanation).toBe(`${holder} holds 1 slot of pool build by lease ${lease?.leaseId}, which is answered again`);
});

test("so is one in a pool that has stopped granting since, when any pool of its labels was asked for", async () => {
  await tenant.setWorkerPool({ ...staticPool("build", 1), labels: { zone: "north" } });
  const request = anyPool({}, { zone: "north" });
  await tenant.acquireLease(request);
  await tenant.drainPool({ poolId: "build", within: { seconds: 60n } });
  expect((await explained(request)).outcome).toBe(Outcome.HELD);
});

test("says why a request is refused whatever is free", async () => {
  await tenant.setWorkerPool({ ...staticPool("build", 2), labels: { zone: "north" } });
  await tenant.setWorkerPool({ ...staticPool("general", 2), kind: PoolKind.GENERAL });
  const request = attempt("build");
  await tenant.acquireLease(request);
  await service.database.endedHolder.create({
    data: { tenantId, holderKind: "Attempt", holderId: "over", endedAt: new Date(0) },
  });
  const reasons: [Acquire, string][] = [
    [attempt("nowhere"), "pool nowhere does not exist"],
    [anyPool({}, { zone: "south" }), "zone=south"],
    [attempt("build", { holderId: "over" }), "Attempt over is ENDED"],
    [attempt("build", { units: 3 }), "units"],
    [attempt("general"), "resource"],
    [{ ...request, units: 2 }, "release it first"],
  ];
  for (const [acquire, reason] of reasons) {
    const { outcome, explanation } = await explained(acquire);
    expect(outcome).toBe(Outcome.REFUSED);
    expect(explanation).toContain(reason);
  }
});

test("explains every pool that the labels allow, the best first by the placement", async () => {
  const labels = { gpu: "a100" };
  const pool = (poolId: string, size: number) => tenant.setWorkerPool({ ...staticPool(poolId, size), labels });
  await pool("large", 10);
  await pool("small", 2);
  await pool("full", 1);
  await pool("closed", 4);
  await tenant.setWorkerPool(staticPool("other", 9));
  await tenant.acquireLease(attempt("full"));
  await tenant.cordonPool({ poolId: "closed" });
  const order = async (placement: Placement) => {
    const { pools } = await tenant.explainCapacity({ acquire: anyPool({}, labels, placement) });
    return pools.map(({ poolId }) => poolId);
  };
  expect(await order(Placement.PACK)).toEqual(["small", "large", "closed", "full"]);
  expect(await order(Placement.SPREAD)).toEqual(["large", "small", "closed", "full"]);
  expect((await explained(anyPool({}, labels, Placement.SPREAD))).poolId).toBe("large");
  await tenant.cordonPool({ poolId: "large" });
  const { outcome, explanation } = await explained(anyPool({ units: 3, ...patiently }, labels));
  expect(outcome).toBe(Outcome.WAITS);
  expect(explanation).toMatch(/^none of 4 pools grants it now; the best: pool /);
});

test("tells a tenant its place between the others, not behind the one that asked for most", async () => {
  const poolId = `shared-${uuidv7()}`;
  const whale = service.as(`tenant-${uuidv7()}`);
  await whale.setWorkerPool({ ...staticPool(poolId, 1), shared: true });
  await whale.acquireLease(attempt(poolId));
  for (let count = 0; count < 5; count++) {
    await whale.acquireLease(attempt(poolId, { projectId: `p${count % 2}`, ...patiently }));
  }
  const { pools } = await explained(attempt(poolId, patiently));
  expect(pools).toMatchObject([{ waiting: 5 }]);
  expect(pools[0]?.position).toBeLessThanOrEqual(2);
  expect((await explained(attempt(poolId, patiently), whale)).pools[0]?.position).toBeGreaterThan(5);
});

test("names the field of a request that can't be one", async () => {
  const refused = tenant.explainCapacity({ acquire: { ...attempt("build"), selector: { kind: PoolKind.GENERAL } } });
  await expect(refused).rejects.toMatchObject({ code: Code.InvalidArgument });
  await expect(refused).rejects.toThrow("acquire.selector");
  await expect(tenant.explainCapacity({})).rejects.toMatchObject({ code: Code.InvalidArgument });
});
