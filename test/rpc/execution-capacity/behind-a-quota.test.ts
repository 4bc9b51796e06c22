import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { LeaseState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  patiently,
  startCapacity,
  staticPool,
} from "../../_support/execution-capacity.ts";

/*
 * Who waits for more slots than are free holds up all behind it. Here its project's quota comes to block it as well, by
 * what the project is granted in another pool: then those behind have their turn, at once.
 */

let service: CapacityService;
let tenant: CapacityClient;
let narrow: string;
let wide: string;

beforeAll(async () => {
  service = await startCapacity();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenant = service.as(`tenant-${uuidv7()}`);
  [narrow, wide] = [`narrow-${uuidv7()}`, `wide-${uuidv7()}`];
  await tenant.setWorkerPool({ ...staticPool(narrow, 4), shared: true });
  await tenant.setWorkerPool({ ...staticPool(wide, 4), shared: true });
  await tenant.setQuota({ projectId: "large", concurrentRuns: 5, concurrentSandboxes: 0 });
});
afterEach(async () => {
  expect(await service.differences()).toEqual([]);
});

async function leaseOf(client: CapacityClient, pool: string, changes: Parameters<typeof attempt>[1]): Promise<string> {
  const { lease } = await client.acquireLease(attempt(pool, { ...patiently, ...changes }));
  return lease?.leaseId ?? "";
}
const stateOf = async (leaseId: string) => LeaseState[(await tenant.getLease({ leaseId })).lease?.state ?? 0];

/** One slot is free, the first wants two, and one that wants it waits behind. */
async function heldUp(): Promise<string> {
  await leaseOf(tenant, narrow, { projectId: "other", units: 3 });
  await leaseOf(tenant, narrow, { projectId: "large", units: 2 });
  const behind = await leaseOf(tenant, narrow, { projectId: "small" });
  expect(await stateOf(behind)).toBe("WAITING");
  return behind;
}

test("serves those behind when an acquire elsewhere uses up the quota of the first", async () => {
  const behind = await heldUp();
  await leaseOf(tenant, wide, { projectId: "large", units: 4 });
  expect(await stateOf(behind)).toBe("ACTIVE");
});

test("serves those behind when an acquire that is decided on what is remembered does so", async () => {
  for (const units of [1, 1]) {
    const leaseId = await leaseOf(tenant, wide, { projectId: "large", units });
    await tenant.releaseLease({ leaseId });
  }
  const behind = await heldUp();
  for (const units of [1, 3]) await leaseOf(tenant, wide, { projectId: "large", units });
  expect(await stateOf(behind)).toBe("ACTIVE");
});

test("serves those behind when another tenant's release has the first granted elsewhere", async () => {
  const other = service.as(`tenant-${uuidv7()}`);
  const leaseId = await leaseOf(other, wide, { units: 4 });
  const behind = await heldUp();
  await leaseOf(tenant, wide, { projectId: "large", units: 4 });
  await other.releaseLease({ leaseId });
  expect(await stateOf(behind)).toBe("ACTIVE");
});

test("serves who is behind some beyond their quota, and whose turn is before one that needs more slots", async () => {
  const [first, second, third, holder] = ["a", "b", "c", "holder"].map((name) => service.as(`${name}-${uuidv7()}`));
  if (!first || !second || !third || !holder) throw new Error("a tenant is missing");
  const held: string[] = [];
  for (let count = 0; count < 4; count += 1) held.push(await leaseOf(holder, narrow, {}));
  await leaseOf(first, narrow, { units: 4 });
  await leaseOf(first, narrow, { units: 4 });
  const behind = await leaseOf(first, narrow, {});
  await leaseOf(second, narrow, { units: 2 });
  for (let count = 0; count < 6; count += 1) await leaseOf(third, narrow, { projectId: `project-${count}` });
  await first.setQuota({ concurrentRuns: 3, concurrentSandboxes: 0 });

  await holder.releaseLease({ leaseId: held[0] ?? "" });
  expect((await first.getLease({ leaseId: behind })).lease?.state).toBe(LeaseState.ACTIVE);
});
