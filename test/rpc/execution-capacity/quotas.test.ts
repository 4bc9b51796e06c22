import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { CapacityResource, PoolKind, QuotaState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
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
beforeEach(() => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
});
afterEach(async () => {
  expect(await service.differences()).toEqual([]);
});

const code = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error).code,
  );
const changed = async () =>
  (await service.announced(tenantId)).filter(({ event }) => event === "QuotaChanged").map(({ data }) => data);

test("sets a quota, changes it, and announces each change but no repeat", async () => {
  const { quota } = await tenant.setQuota({ projectId: "p1", concurrentRuns: 2, concurrentSandboxes: 3 });
  expect(quota).toMatchObject({ projectId: "p1", state: QuotaState.ACTIVE, weight: 1, usedRuns: 0 });
  await tenant.setQuota({ projectId: "p1", concurrentRuns: 2, concurrentSandboxes: 3 });
  const again = await tenant.setQuota({ projectId: "p1", concurrentRuns: 4, concurrentSandboxes: 3 });
  expect(again.quota?.quotaId).toBe(quota?.quotaId);
  expect(await changed()).toEqual([
    { quotaId: quota?.quotaId, tenantId, projectId: "p1", concurrentRuns: 2, concurrentSandboxes: 3 },
    { quotaId: quota?.quotaId, tenantId, projectId: "p1", concurrentRuns: 4, concurrentSandboxes: 3 },
  ]);
  expect(await code(tenant.getQuota({}))).toBe(Code.NotFound);
});

test("makes one quota of two that are set at once", async () => {
  const [one, two] = await Promise.all([
    tenant.setQuota({ concurrentRuns: 1, concurrentSandboxes: 1 }),
    tenant.setQuota({ concurrentRuns: 2, concurrentSandboxes: 2 }),
  ]);
  expect(one.quota?.quotaId).toBe(two.quota?.quotaId);
});

test("accepts limits below the use: evicts nobody, shows the overhang, grants nothing until it is gone", async () => {
  await tenant.setWorkerPool(staticPool("build", 9));
  const leases = [];
  for (let count = 0; count < 3; count += 1)
    leases.push((await tenant.acquireLease(attempt("build"))).lease?.leaseId ?? "");
  const { quota } = await tenant.setQuota({ concurrentRuns: 1, concurrentSandboxes: 0 });
  expect(quota).toMatchObject({ concurrentRuns: 1, usedRuns: 3 });
  for (const leaseId of leases.slice(1)) {
    expect(await code(tenant.acquireLease(attempt("build")))).toBe(Code.ResourceExhausted);
    await tenant.releaseLease({ leaseId });
  }
  expect(await code(tenant.acquireLease(attempt("build")))).toBe(Code.ResourceExhausted);
  await tenant.releaseLease({ leaseId: leases[0] ?? "" });
  expect(await code(tenant.acquireLease(attempt("build")))).toBeUndefined();
});

test("charges by the kind of pool, and in a GENERAL one as the request names", async () => {
  await tenant.setWorkerPool(staticPool("runs", 9));
  await tenant.setWorkerPool({ ...staticPool("hosts", 9), kind: PoolKind.SANDBOX_HOSTS });
  await tenant.setWorkerPool({ ...staticPool("any", 9), kind: PoolKind.GENERAL });
  await tenant.setQuota({ concurrentRuns: 3, concurrentSandboxes: 2 });
  await tenant.acquireLease(attempt("runs"));
  await tenant.acquireLease(attempt("hosts", { units: 2 }));
  await tenant.acquireLease({ ...attempt("any", { units: 2 }), resource: CapacityResource.RUNS });
  expect((await tenant.getQuota({})).quota).toMatchObject({ usedRuns: 3, usedSandboxes: 2 });
  expect(await code(tenant.acquireLease(attempt("any")))).toBe(Code.InvalidArgument);
  expect(await code(tenant.acquireLease({ ...attempt("runs"), resource: CapacityResource.SANDBOXES }))).toBe(
    Code.InvalidArgument,
  );
  expect(await code(tenant.acquireLease(attempt("runs")))).toBe(Code.ResourceExhausted);
  expect(await code(tenant.acquireLease(attempt("hosts")))).toBe(Code.ResourceExhausted);
});

test("retires a quota for good; another one may be set", async () => {
  const { quota } = await tenant.setQuota({ concurrentRuns: 1, concurrentSandboxes: 1 });
  const quotaId = quota?.quotaId ?? "";
  expect((await tenant.retireQuota({ quotaId })).quota?.state).toBe(QuotaState.RETIRED);
  expect(await code(tenant.retireQuota({ quotaId }))).toBe(Code.FailedPrecondition);
  expect(await code(tenant.getQuota({}))).toBe(Code.NotFound);
  const next = await tenant.setQuota({ concurrentRuns: 2, concurrentSandboxes: 2 });
  expect(next.quota?.quotaId).not.toBe(quotaId);
});
