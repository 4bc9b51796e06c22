import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { PoolKind, PoolState, QuotaState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
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
let tenant: CapacityClient;
let other: CapacityClient;

beforeAll(async () => {
  service = await startCapacity();
});
afterAll(() => service.close());
beforeEach(() => {
  tenant = service.as(`tenant-${uuidv7()}`);
  other = service.as(`tenant-${uuidv7()}`);
});

type PoolFilter = Parameters<CapacityClient["listWorkerPools"]>[0];

/** Every page of a list of pools: ids, each with its tenant's part of it. */
async function poolPages(filter: PoolFilter): Promise<string[][]> {
  const pages: string[][] = [];
  let pageToken = "";
  do {
    const page = await tenant.listWorkerPools({ ...filter, pageToken });
    pages.push(page.pools.map(({ poolId, shared }) => (shared ? `${poolId} (shared)` : poolId)));
    pageToken = page.nextPageToken;
  } while (pageToken);
  return pages;
}

test("ListWorkerPools gives the pools that pass every filter, page by page in order of their ids", async () => {
  const gpu = { gpu: "a100", zone: "north" };
  await tenant.setWorkerPool({ ...staticPool("east", 1), labels: { zone: "north" } });
  await tenant.setWorkerPool({ ...staticPool("alpha", 1), labels: gpu });
  await tenant.setWorkerPool({ ...staticPool("delta", 1), labels: gpu });
  await tenant.setWorkerPool({ ...staticPool("boxes", 1), kind: PoolKind.SANDBOX_HOSTS, labels: gpu });
  await tenant.cordonPool({ poolId: "delta" });

  expect(await poolPages({ pageSize: 3 })).toEqual([["alpha", "boxes", "delta"], ["east"]]);
  expect(await poolPages({ labels: gpu })).toEqual([["alpha", "boxes", "delta"]]);
  expect(await poolPages({ labels: gpu, kind: PoolKind.RUN_WORKERS, pageSize: 1 })).toEqual([["alpha"], ["delta"]]);
  expect(await poolPages({ labels: gpu, state: PoolState.CORDONED })).toEqual([["delta"]]);
  expect(await poolPages({ labels: { gpu: "h100" } })).toEqual([[]]);
});

test("the pools that other tenants share are listed when asked for, beside own ones of the same name", async () => {
  const name = `pool-${uuidv7()}`;
  await tenant.setWorkerPool({ ...staticPool(name, 1), labels: { of: name } });
  await other.setWorkerPool({ ...staticPool(name, 1), shared: true, labels: { of: name } });
  await other.setWorkerPool({ ...staticPool(`${name}x`, 1), labels: { of: name } });
  const filter = { labels: { of: name }, pageSize: 1 };
  expect(await poolPages({ ...filter, includeShared: true })).toEqual([[name], [`${name} (shared)`]]);
  expect(await poolPages(filter)).toEqual([[name]]);
});

test("a page token is good for the same filters only", async () => {
  await tenant.setWorkerPool(staticPool("one", 1));
  await tenant.setWorkerPool(staticPool("two", 1));
  const { nextPageToken: pageToken } = await tenant.listWorkerPools({ pageSize: 1 });
  const refused = { code: Code.InvalidArgument };
  await expect(tenant.listWorkerPools({ pageToken, labels: { a: "b" } })).rejects.toMatchObject(refused);
  await expect(tenant.listWorkerPools({ pageToken, includeShared: true })).rejects.toMatchObject(refused);
  await expect(tenant.listWorkerPools({ pageToken: "made-up" })).rejects.toMatchObject(refused);
});

test("a pool tells how many wait for it, and by how much it is over-committed after it shrank", async () => {
  await tenant.setWorkerPool(staticPool("build", 3));
  await tenant.acquireLease(attempt("build", { units: 3 }));
  await tenant.acquireLease(attempt("build", patiently));
  expect((await tenant.getWorkerPool({ poolId: "build" })).pool).toMatchObject({ waiting: 1, overCommitted: 0 });
  const { pool } = await tenant.setWorkerPool(staticPool("build", 1));
  expect(pool).toMatchObject({ currentSize: 1, used: 3, waiting: 1, overCommitted: 2 });
});

test("ListQuotas gives a tenant's quotas, the newest first, and the retired ones when asked for", async () => {
  const limits = { concurrentRuns: 2, concurrentSandboxes: 1 };
  await tenant.setQuota(limits);
  const { quota: second } = await tenant.setQuota({ ...limits, projectId: "p1" });
  await tenant.setQuota({ ...limits, projectId: "p2" });
  await other.setQuota(limits);
  await tenant.retireQuota({ quotaId: second?.quotaId ?? "" });
  await tenant.setWorkerPool(staticPool("build", 1));
  await tenant.acquireLease(attempt("build"));

  const all = await tenant.listQuotas({ includeRetired: true });
  expect(all.quotas.map(({ projectId }) => projectId)).toEqual(["p2", "p1", undefined]);
  expect(all.quotas.map(({ state }) => state)).toEqual([QuotaState.ACTIVE, QuotaState.RETIRED, QuotaState.ACTIVE]);
  expect(all.quotas.at(-1)).toMatchObject({ usedRuns: 1, concurrentRuns: 2 });

  const first = await tenant.listQuotas({ pageSize: 1 });
  expect(first.quotas.map(({ projectId }) => projectId)).toEqual(["p2"]);
  const rest = await tenant.listQuotas({ pageSize: 1, pageToken: first.nextPageToken });
  expect(rest).toMatchObject({ quotas: [{ concurrentRuns: 2 }], nextPageToken: "" });
  await expect(tenant.listQuotas({ pageToken: first.nextPageToken, includeRetired: true })).rejects.toMatchObject({
    code: Code.InvalidArgument,
  });
});
