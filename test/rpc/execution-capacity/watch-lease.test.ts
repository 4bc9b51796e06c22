import { Code } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { LeaseState, ReleaseReason } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { leaseExpiry } from "@runtime-cloud/execution-capacity/desk/overdue-leases";
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
import { held } from "./lease-calls.ts";

let database: TestDatabase;
let service: CapacityService;
let tenantId: string;
let tenant: CapacityClient;
const stops: AbortController[] = [];

beforeAll(async () => {
  database = await testDatabase("execution-capacity");
  service = await startCapacity({ database });
});
afterAll(async () => {
  await service.close();
  await database.drop();
});
beforeEach(() => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
});
afterEach(async () => {
  for (const stop of stops.splice(0)) stop.abort();
  expect(await service.differences()).toEqual([]);
});

function watching(leaseId: string, client = tenant) {
  const stop = new AbortController();
  stops.push(stop);
  const stream = client.watchLease({ leaseId }, { signal: stop.signal })[Symbol.asyncIterator]();
  return {
    /** The next message, or undefined at the stream's end. */
    async next() {
      const step = await stream.next();
      return step.done ? undefined : step.value;
    },
    stop: () => stop.abort(),
  };
}

/** A holder that waits behind others. */
async function waiter(poolId: string): Promise<string> {
  const { lease } = await tenant.acquireLease(attempt(poolId, patiently));
  return lease?.leaseId ?? "";
}

test("tells a lease as it is, each renewal, and its end, which ends the stream", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId, fencingToken } = await held(tenant, "build");
  const watch = watching(leaseId);
  const first = await watch.next();
  expect(first).toMatchObject({ lease: { leaseId, state: LeaseState.ACTIVE }, ttl: expect.anything() });
  await tenant.renewLease({ leaseId, fencingToken, ttl: { seconds: 600n } });
  const renewed = await watch.next();
  expect(renewed?.ttl?.seconds).toBeGreaterThan(500n);
  await tenant.releaseLease({ leaseId });
  const ended = await watch.next();
  expect(ended).toMatchObject({ lease: { state: LeaseState.RELEASED, releaseReason: ReleaseReason.HOLDER } });
  expect(ended?.ttl).toBeUndefined();
  expect(await watch.next()).toBeUndefined();
});

test("tells a waiter that it comes forward, and then its grant", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId } = await held(tenant, "build");
  const ahead = await waiter("build");
  const watch = watching(await waiter("build"));
  expect((await watch.next())?.lease?.waiting?.position).toBe(2);
  await tenant.releaseLease({ leaseId: ahead });
  expect((await watch.next())?.lease?.waiting?.position).toBe(1);
  await tenant.releaseLease({ leaseId });
  const granted = await watch.next();
  expect(granted).toMatchObject({ lease: { state: LeaseState.ACTIVE }, ttl: expect.anything() });
  expect(granted?.lease?.waiting).toBeUndefined();
});

test("tells what another process and what time does", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const other = await startCapacity({ database });
  try {
    const { lease } = await tenant.acquireLease(attempt("build", { ttl: { seconds: 1n } }));
    const leaseId = lease?.leaseId ?? "";
    const watch = watching(leaseId);
    await watch.next();
    await other.as(tenantId).renewLease({ leaseId, fencingToken: lease?.fencingToken ?? 0n, ttl: { seconds: 2n } });
    expect((await watch.next())?.lease?.state).toBe(LeaseState.ACTIVE);
    const end = watch.next();
    await until("the lease has expired", 10_000, async () => {
      await runOut(leaseExpiry(other.context, other.desk));
      const { state } = await service.database.capacityLease.findFirstOrThrow({ where: { id: leaseId } });
      return state === "EXPIRED" || undefined;
    });
    expect((await end)?.lease?.state).toBe(LeaseState.EXPIRED);
    expect(await watch.next()).toBeUndefined();
  } finally {
    await other.close();
  }
});

test("tells a lease that has ended once, and ends", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId } = await held(tenant, "build");
  await tenant.releaseLease({ leaseId });
  const watch = watching(leaseId);
  expect((await watch.next())?.lease?.state).toBe(LeaseState.RELEASED);
  expect(await watch.next()).toBeUndefined();
});

test("another tenant's lease and one that doesn't exist are both NOT_FOUND", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId } = await held(tenant, "build");
  const stranger = service.as(`tenant-${uuidv7()}`);
  const refusals = [
    [leaseId, stranger],
    [uuidv7(), tenant],
  ] as const;
  for (const [id, client] of refusals) {
    await expect(watching(id, client).next()).rejects.toMatchObject({
      code: Code.NotFound,
      rawMessage: `lease ${id} does not exist`,
    });
  }
});

test("a slow watcher hears the last of what it missed", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId, fencingToken } = await held(tenant, "build");
  const watch = watching(leaseId);
  await watch.next();
  for (const seconds of [100n, 200n, 300n, 400n]) await tenant.renewLease({ leaseId, fencingToken, ttl: { seconds } });
  await tenant.releaseLease({ leaseId });
  const heard: (LeaseState | undefined)[] = [];
  for (let step = await watch.next(); step; step = await watch.next()) heard.push(step.lease?.state);
  expect(heard.at(-1)).toBe(LeaseState.RELEASED);
  expect(heard.length).toBeLessThan(5);
});
