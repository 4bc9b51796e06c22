import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { PoolKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
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

const of = (projectId: string) => ({ projectId });

test("tells what a tenant and its projects hold and wait for, beside their limits and weights", async () => {
  await tenant.setQuota({ concurrentRuns: 3, concurrentSandboxes: 9 });
  await tenant.setQuota({ projectId: "api", concurrentRuns: 2, concurrentSandboxes: 1, weight: 4 });
  await tenant.setWorkerPool(staticPool("build", 10));
  await tenant.setWorkerPool({ ...staticPool("boxes", 10), kind: PoolKind.SANDBOX_HOSTS });
  await tenant.acquireLease(attempt("build", { ...of("api"), units: 2 }));
  await tenant.acquireLease(attempt("build", of("web")));
  await tenant.acquireLease(attempt("build", { ...of("api"), ...patiently }));
  await tenant.acquireLease(attempt("boxes", { ...of("web"), units: 3 }));

  const { tenant: whole, projects, nextPageToken } = await tenant.getCapacityUsage({});
  expect(whole).toMatchObject({
    ...{ projectId: "", runs: { used: 3, limit: 3 }, sandboxes: { used: 3, limit: 9 }, weight: 1, waiting: 1 },
  });
  expect(projects).toMatchObject([
    { projectId: "api", runs: { used: 2, limit: 2 }, sandboxes: { used: 0, limit: 1 }, weight: 4, waiting: 1 },
    { projectId: "web", runs: { used: 1 }, sandboxes: { used: 3 }, weight: 1, waiting: 0 },
  ]);
  expect(projects[1]?.runs).not.toHaveProperty("limit");
  expect(nextPageToken).toBe("");
});

test("adds up the seconds that CapacityLeaseReleased told", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { lease } = await tenant.acquireLease(attempt("build"));
  await service.database.$executeRaw`
    UPDATE capacity_lease SET granted_at = granted_at - interval '7 seconds', version = version + 1 WHERE tenant_id = ${tenantId}`;
  await tenant.releaseLease({ leaseId: lease?.leaseId ?? "" });
  const { tenant: whole, projects } = await tenant.getCapacityUsage({});
  const told = (await service.announced(tenantId)).find(({ event }) => event === "CapacityLeaseReleased");
  expect(whole?.executionSeconds.toString()).toBe(told?.data.executionSeconds);
  expect(whole?.executionSeconds).toBeGreaterThanOrEqual(7n);
  expect(projects).toMatchObject([{ projectId: "p1", executionSeconds: whole?.executionSeconds }]);
});

test("gives projects by name and page by page, the idle ones left out on request", async () => {
  await tenant.setWorkerPool(staticPool("build", 2));
  for (const projectId of ["c", "a", "b"]) {
    const { lease } = await tenant.acquireLease(attempt("build", of(projectId)));
    if (projectId !== "b") await tenant.releaseLease({ leaseId: lease?.leaseId ?? "" });
  }
  await tenant.acquireLease(attempt("build", of("b")));
  await tenant.acquireLease(attempt("build", { ...of("waits"), ...patiently }));
  const pages = async (activeOnly: boolean) => {
    const found: string[][] = [];
    let pageToken = "";
    do {
      const page = await tenant.getCapacityUsage({ activeOnly, pageSize: 2, pageToken });
      found.push(page.projects.map(({ projectId }) => projectId));
      pageToken = page.nextPageToken;
    } while (pageToken);
    return found;
  };
  expect(await pages(false)).toEqual([
    ["a", "b"],
    ["c", "waits"],
  ]);
  expect(await pages(true)).toEqual([["b", "waits"]]);
  const { nextPageToken: pageToken } = await tenant.getCapacityUsage({ pageSize: 1 });
  await expect(tenant.getCapacityUsage({ activeOnly: true, pageToken })).rejects.toMatchObject({
    code: Code.InvalidArgument,
  });
});

test("a lease that may take several pools waits once", async () => {
  await tenant.setWorkerPool(staticPool("one", 1));
  await tenant.setWorkerPool(staticPool("two", 1));
  await tenant.acquireLease(attempt("one"));
  await tenant.acquireLease(attempt("two"));
  const { poolId: _anyPool, ...wanted } = attempt("", patiently);
  await tenant.acquireLease({ ...wanted, selector: { kind: PoolKind.RUN_WORKERS } });
  const { tenant: whole, projects } = await tenant.getCapacityUsage({});
  expect(whole?.waiting).toBe(1);
  expect(projects).toMatchObject([{ projectId: "p1", waiting: 1 }]);
  expect((await tenant.listWorkerPools({})).pools.map(({ waiting }) => waiting)).toEqual([1, 1]);
});

test("a project that nobody knows uses nothing, within the limits that were set for it", async () => {
  await tenant.setQuota({ projectId: "planned", concurrentRuns: 5, concurrentSandboxes: 0 });
  const { projects } = await tenant.getCapacityUsage({ projectId: "planned" });
  const nothing = { waiting: 0, executionSeconds: 0n };
  expect(projects).toMatchObject([{ projectId: "planned", runs: { used: 0, limit: 5 }, ...nothing }]);
  const unknown = await tenant.getCapacityUsage({ projectId: "unknown" });
  expect(unknown.projects).toMatchObject([{ projectId: "unknown", runs: { used: 0 }, weight: 1, ...nothing }]);
  expect((await tenant.getCapacityUsage({})).projects).toMatchObject([{ projectId: "planned" }]);
  expect((await tenant.getCapacityUsage({ activeOnly: true })).projects).toEqual([]);
});
