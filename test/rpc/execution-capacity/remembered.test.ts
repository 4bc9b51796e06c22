import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { RenewLeaseResponse_Result as Renewal } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { LeaseState, PoolState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import type { AcquireOperation } from "@runtime-cloud/execution-capacity/desk/lease-operation";
import { openLeaseDesk } from "@runtime-cloud/execution-capacity/desk/lease-desk";
import { endHolder } from "@runtime-cloud/execution-capacity/desk/ended-holder";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { testDatabase, type TestDatabase } from "../../_support/database.ts";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  patiently,
  startCapacity,
  staticPool,
} from "../../_support/execution-capacity.ts";

/*
 * A process decides on what it remembers of its batches before. Here it does so once, then another process changes what
 * that rests on, and what comes next must be decided on what is there.
 */

let database: TestDatabase;
let service: CapacityService;
let other: CapacityService;
let tenantId: string;
let here: CapacityClient;
let elsewhere: CapacityClient;

beforeAll(async () => {
  database = await testDatabase("execution-capacity");
  service = await startCapacity({ database });
  other = await startCapacity({ database });
});
afterAll(async () => {
  await service.close();
  await other.close();
  await database.drop();
});
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  here = service.as(tenantId);
  elsewhere = other.as(tenantId);
  await here.setWorkerPool(staticPool("build", 3));
});
afterEach(async () => {
  expect(await service.differences()).toEqual([]);
});

/** Callers of a desk, pairs of each, and by how many turns of the event loop they come apart. */
const CALLERS = 24;
const PAIRS = 20;
const TURNS = 4;

const CAUSE = { actor: "worker", correlationId: "side-by-side" };

function acquireOf(poolId: string): AcquireOperation {
  return {
    ...{ kind: "acquire", tenantId, cause: CAUSE, projectId: "p1", holderKind: "Attempt", holderId: uuidv7() },
    ...{ target: { poolId }, resource: undefined, units: 1, priority: 0, ttlMs: 60_000, waitMs: 0 },
  };
}

/** Has this process know the pool and the tenant, and gives a lease that it holds. */
async function held(changes: Parameters<typeof attempt>[1] = {}) {
  await here.releaseLease({ leaseId: (await here.acquireLease(attempt("build"))).lease?.leaseId ?? "" });
  const { lease } = await here.acquireLease(attempt("build", changes));
  if (!lease) throw new Error("no lease was granted");
  return lease;
}

const code = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error).code,
  );

test("never grants more than another process has left", async () => {
  await held();
  await elsewhere.acquireLease(attempt("build", { units: 2 }));
  expect(await code(here.acquireLease(attempt("build")))).toBe(Code.ResourceExhausted);
});

test("heeds a quota that was lowered by another process", async () => {
  await held();
  await elsewhere.setQuota({ concurrentRuns: 1, concurrentSandboxes: 0 });
  expect(await code(here.acquireLease(attempt("build")))).toBe(Code.ResourceExhausted);
});

test("grants nothing in a pool that another process has cordoned", async () => {
  await held();
  await elsewhere.cordonPool({ poolId: "build" });
  expect(await code(here.acquireLease(attempt("build")))).toBe(Code.ResourceExhausted);
});

test("caps a renewal in a pool that another process drains", async () => {
  const { leaseId, fencingToken = 0n } = await held();
  const { pool } = await elsewhere.drainPool({ poolId: "build", within: { seconds: 30n } });
  const renewed = await here.renewLease({ leaseId, fencingToken, ttl: { seconds: 600n } });
  expect(renewed.lease?.expiresAt).toEqual(pool?.drainDeadline);
  await here.releaseLease({ leaseId });
  expect((await here.getWorkerPool({ poolId: "build" })).pool?.state).toBe(PoolState.DRAINED);
});

test("grants nothing to a holder that another process has seen end", async () => {
  await held();
  const holderId = uuidv7();
  const cause = { actor: "test", correlationId: "test" };
  await unitOfWork(other.context, cause, (unit) =>
    endHolder(other.context, unit, { tenantId, holderKind: "Attempt", holderId }, "ATTEMPT_OUTCOME"),
  );
  expect(await code(here.acquireLease(attempt("build", { holderId })))).toBe(Code.FailedPrecondition);
});

test("answers a holder the lease that another process has given it", async () => {
  await held();
  const request = attempt("build");
  const { lease } = await elsewhere.acquireLease(request);
  expect((await here.acquireLease(request)).lease).toEqual(lease);
});

test("serves who waits in another pool for the tenant's quota, if only another process knows of it", async () => {
  await here.setWorkerPool(staticPool("test", 3));
  await here.setQuota({ concurrentRuns: 1, concurrentSandboxes: 0 });
  const { leaseId } = await held();
  const { lease: waiter } = await elsewhere.acquireLease(attempt("test", patiently));
  expect(waiter?.state).toBe(LeaseState.WAITING);
  await here.releaseLease({ leaseId });
  expect((await here.getLease({ leaseId: waiter?.leaseId ?? "" })).lease?.state).toBe(LeaseState.ACTIVE);
});

test("renews a lease that another process has renewed, and none that it has released", async () => {
  const { leaseId, fencingToken = 0n } = await held();
  const renewal = { leaseId, fencingToken, ttl: { seconds: 300n } };
  const first = await elsewhere.renewLease(renewal);
  const second = await here.renewLease({ ...renewal, ttl: { seconds: 1n } });
  expect([first.result, second.result]).toEqual([Renewal.RENEWED, Renewal.RENEWED]);
  expect(second.lease?.expiresAt).toEqual(first.lease?.expiresAt);
  await elsewhere.releaseLease({ leaseId });
  expect((await here.renewLease(renewal)).result).toBe(Renewal.ALREADY_ENDED);
});

test("answers a holder no lease that another process has taken back", async () => {
  const request = attempt("build");
  const { leaseId } = await held({ holderId: request.holderId });
  await elsewhere.revokeLease({ leaseId });
  const { lease } = await here.acquireLease(request);
  expect(lease?.state).toBe(LeaseState.ACTIVE);
  expect(lease?.leaseId).not.toBe(leaseId);
});

test("counts a waiter once that is asked for again and withdrawn at the same moment", async () => {
  await held({ units: 3 });
  const request = attempt("build", patiently);
  const { lease: waiter } = await here.acquireLease(request);
  await Promise.all([here.acquireLease(request), here.releaseLease({ leaseId: waiter?.leaseId ?? "" })]);
  const { lease: last } = await here.acquireLease(attempt("build", patiently));
  const { pool } = await here.getWorkerPool({ poolId: "build" });
  const { leases } = await here.listLeases({ poolId: "build", state: LeaseState.WAITING });
  expect(leases.map(({ leaseId }) => leaseId)).toContain(last?.leaseId);
  expect(pool?.waiting).toBe(leases.length);
});

test("small batches side by side are decided without locks from the start", async () => {
  await here.setWorkerPool(staticPool("wide", CALLERS));
  const operations = { remembered: 0, locked: 0 };
  const desk = openLeaseDesk(service.context, ({ way, size }) => (operations[way] += size));
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      for (let pair = 0; pair < PAIRS; pair += 1) {
        // Callers that come one after the other fill several small batches instead of one.
        for (let turn = 0; turn < caller % TURNS; turn += 1) await nextTurn();
        const { lease } = await desk.submit(acquireOf("wide"));
        await desk.submit({ kind: "release", tenantId, cause: CAUSE, leaseId: lease.id });
      }
    }),
  );
  expect(operations.remembered + operations.locked).toBe(CALLERS * PAIRS * 2);
  // The first batch of each lane knows nothing yet.
  expect(operations.locked).toBeLessThanOrEqual(2 * CALLERS);
});
