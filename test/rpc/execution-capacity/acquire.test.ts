import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { QuotaFailureSchema, RetryInfoSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import { LeaseState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
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

const refused = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error),
  );
const acquired = async (calls: Promise<unknown>[]) => {
  const errors = await Promise.all(calls.map(refused));
  const codes = errors.flatMap((error) => (error ? [Code[error.code]] : []));
  return { granted: errors.length - codes.length, codes: new Set(codes) };
};

test("never grants more than a pool's slots to 32 holders at once, in four processes", async () => {
  await tenant.setWorkerPool(staticPool("build", 7));
  const processes = Array.from({ length: 4 }, () => service.as(tenantId));
  const calls = processes.flatMap((one) => Array.from({ length: 8 }, () => one.acquireLease(attempt("build"))));
  const outcome = await acquired(calls);
  expect(outcome).toEqual({ granted: 7, codes: new Set(["ResourceExhausted"]) });
  expect((await tenant.getWorkerPool({ poolId: "build" })).pool?.used).toBe(7);
});

test("never grants more than a quota to holders in two pools at once", async () => {
  await tenant.setWorkerPool(staticPool("build", 50));
  await tenant.setWorkerPool(staticPool("test", 50));
  await tenant.setQuota({ concurrentRuns: 5, concurrentSandboxes: 0 });
  const calls = Array.from({ length: 32 }, (_, index) => tenant.acquireLease(attempt(index % 2 ? "build" : "test")));
  expect(await acquired(calls)).toEqual({ granted: 5, codes: new Set(["ResourceExhausted"]) });
  expect((await tenant.getQuota({})).quota?.usedRuns).toBe(5);
});

test("gives a holder one lease, however often and however concurrently it asks", async () => {
  await tenant.setWorkerPool(staticPool("build", 9));
  const request = attempt("build");
  const answers = await Promise.all(Array.from({ length: 8 }, () => tenant.acquireLease(request)));
  const again = await tenant.acquireLease(request);
  expect(new Set(answers.map(({ lease }) => lease?.leaseId))).toEqual(new Set([again.lease?.leaseId]));
  expect(new Set(answers.map(({ lease }) => lease?.fencingToken))).toEqual(new Set([1n]));
  expect((await service.announced(tenantId)).filter(({ event }) => event === "CapacityLeaseGranted")).toHaveLength(1);
});

test("answers with a lifetime, and when to renew: a third of it, up to a tenth earlier", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { lease, ttl, renewAfter } = await tenant.acquireLease(attempt("build", { ttl: { seconds: 90n } }));
  expect(lease?.state).toBe(LeaseState.ACTIVE);
  expect(ttl?.seconds).toBe(90n);
  expect(Number(renewAfter?.seconds)).toBeGreaterThanOrEqual(27);
  expect(Number(renewAfter?.seconds)).toBeLessThanOrEqual(30);
  expect(service.armed.at(-1)).toMatchObject({ kind: "lease-expiry", label: { pool: "build" } });
});

test("refuses at once a holder that doesn't wait, naming the limit, and keeps nothing of it", async () => {
  await tenant.setWorkerPool(staticPool("build", 5));
  await tenant.setQuota({ projectId: "p1", concurrentRuns: 1, concurrentSandboxes: 0 });
  await tenant.acquireLease(attempt("build"));
  const error = await refused(tenant.acquireLease(attempt("build")));
  expect(error?.code).toBe(Code.ResourceExhausted);
  const [failure] = error?.findDetails(QuotaFailureSchema) ?? [];
  expect(failure?.violations[0]).toMatchObject({ subject: "project:p1" });
  expect(failure?.violations[0]?.description).toContain("concurrentRuns=1");
  expect(error?.findDetails(RetryInfoSchema)).toHaveLength(1);
  expect((await tenant.listLeases({})).leases).toHaveLength(1);
  expect((await service.announced(tenantId)).map(({ event }) => event)).not.toContain("QuotaExceeded");
});

test("counts a lease's units, and leaves projects without a quota unlimited by it", async () => {
  await tenant.setWorkerPool(staticPool("build", 10));
  await tenant.setQuota({ projectId: "p1", concurrentRuns: 3, concurrentSandboxes: 0 });
  await tenant.acquireLease(attempt("build", { units: 2 }));
  expect((await refused(tenant.acquireLease(attempt("build", { units: 2 }))))?.code).toBe(Code.ResourceExhausted);
  await tenant.acquireLease(attempt("build", { units: 8, projectId: "p2" }));
  expect((await tenant.getWorkerPool({ poolId: "build" })).pool?.used).toBe(10);
});

test("doesn't know another tenant's pools, leases and quotas", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { quota } = await tenant.setQuota({ concurrentRuns: 1, concurrentSandboxes: 1 });
  const { lease } = await tenant.acquireLease(attempt("build"));
  const leaseId = lease?.leaseId ?? "";
  const other = service.as(`other-${uuidv7()}`);
  const calls = [
    other.getWorkerPool({ poolId: "build" }),
    other.cordonPool({ poolId: "build" }),
    other.acquireLease(attempt("build")),
    other.getLease({ leaseId }),
    other.renewLease({ leaseId, fencingToken: 1n, ttl: { seconds: 9n } }),
    other.releaseLease({ leaseId }),
    other.revokeLease({ leaseId }),
    other.getQuota({}),
    other.retireQuota({ quotaId: quota?.quotaId ?? "" }),
    other.getLease({ leaseId: uuidv7() }),
  ];
  for (const call of calls) expect((await refused(call))?.code).toBe(Code.NotFound);
  expect((await other.listLeases({})).leases).toEqual([]);
  expect((await other.listWorkerPools({})).pools).toEqual([]);
  expect((await tenant.getLease({ leaseId })).lease?.state).toBe(LeaseState.ACTIVE);
});

test("lists leases by page, newest first, and by filter", async () => {
  await tenant.setWorkerPool(staticPool("build", 9));
  for (let count = 0; count < 5; count += 1) await tenant.acquireLease(attempt("build"));
  const first = await tenant.listLeases({ poolId: "build", pageSize: 3 });
  const second = await tenant.listLeases({ poolId: "build", pageSize: 3, pageToken: first.nextPageToken });
  const ids = [...first.leases, ...second.leases].map(({ leaseId }) => leaseId);
  expect(second.nextPageToken).toBe("");
  expect(ids).toEqual([...new Set(ids)].sort().reverse());
  expect(ids).toHaveLength(5);
  expect((await tenant.listLeases({ state: LeaseState.WAITING })).leases).toEqual([]);
});
