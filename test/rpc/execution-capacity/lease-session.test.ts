import { Code } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { RenewLeaseResponse_Result } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { LeaseState, WaitReason } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { waitOver } from "@runtime-cloud/execution-capacity/desk/overdue-leases";
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
import { acquire, failureOf, held, leaseOf, release, renew } from "./lease-calls.ts";
import { openSession } from "./open-session.ts";

let database: TestDatabase;
let service: CapacityService;
let tenantId: string;
let tenant: CapacityClient;

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
  expect(await service.differences()).toEqual([]);
});

/** Resolves once the tenant holds this many. */
const activeLeases = (count: number) =>
  until(`${count} leases are ACTIVE`, 10_000, async () => {
    const active = await service.database.capacityLease.count({ where: { tenantId, state: "ACTIVE" } });
    return active === count || undefined;
  });

test("answers each operation with its sequence and the response of its own call", async () => {
  await tenant.setWorkerPool(staticPool("build", 10));
  const session = openSession(tenant);
  const first = session.send(acquire(attempt("build")));
  const [acquired] = await session.next(1);
  expect(acquired?.sequence).toBe(first);
  expect(acquired?.result?.result.value).toMatchObject({
    lease: { state: LeaseState.ACTIVE },
    ttl: expect.anything(),
    renewAfter: expect.anything(),
  });
  const { leaseId = "", fencingToken = 0n } = leaseOf(acquired?.result) ?? {};
  session.send(renew(leaseId, fencingToken));
  session.send(release(leaseId, fencingToken));
  session.close();
  const rest = await session.rest();
  expect(rest.map(({ sequence, result }) => [sequence, result?.result.case])).toEqual([
    [2n, "renewed"],
    [3n, "released"],
  ]);
});

test("garbage in the middle fails alone, and the session goes on", async () => {
  await tenant.setWorkerPool(staticPool("build", 10));
  const { leaseId, fencingToken } = await held(tenant, "build");
  const session = openSession(tenant);
  const garbage = [
    undefined,
    {},
    acquire({ ...attempt("build"), ttl: { seconds: -5n } }),
    acquire({ ...attempt("build"), projectId: "\0" }),
    { operation: { case: "acquire" as const, value: { ...attempt("build"), resource: 42 } } },
    release("nonsense"),
    release(uuidv7()),
    release(leaseId, fencingToken + 1n),
  ];
  session.send(acquire(attempt("build")));
  const wrong = garbage.map((operation) => session.send(operation));
  session.send(acquire(attempt("build")));
  session.close();
  const results = await session.rest();
  expect(results).toHaveLength(garbage.length + 2);
  const failures = new Map(
    results.flatMap(({ sequence, result }) => (result?.result.case === "error" ? [[sequence, failureOf(result)]] : [])),
  );
  expect([...failures.keys()].sort()).toEqual([...wrong].sort());
  expect(wrong.map((sequence) => failures.get(sequence)?.fields)).toEqual([
    ["operation"],
    ["operation"],
    ["operation.acquire.ttl"],
    ["operation.acquire.projectId"],
    ["operation.acquire.resource"],
    ["operation.release.leaseId"],
    [],
    [],
  ]);
  expect(wrong.slice(6).map((sequence) => failures.get(sequence)?.code)).toEqual([
    Code.NotFound,
    Code.FailedPrecondition,
  ]);
  expect(failures.get(1n)).toBeUndefined();
  expect((await tenant.getLease({ leaseId })).lease?.state).toBe(LeaseState.ACTIVE);
});

test("what one holder or lease is asked is done and answered in its order, however fast it comes", async () => {
  await tenant.setWorkerPool(staticPool("build", 100));
  const leases = await Promise.all(Array.from({ length: 20 }, () => held(tenant, "build")));
  const session = openSession(tenant);
  const order = leases.map(({ leaseId, fencingToken }) => [
    session.send(renew(leaseId, fencingToken)),
    session.send(renew(leaseId, fencingToken, 600n)),
    session.send(release(leaseId)),
    session.send(renew(leaseId, fencingToken)),
  ]);
  const holder = attempt("build");
  const repeats = Array.from({ length: 20 }, () => session.send(acquire(holder)));
  session.close();
  const results = await session.rest();
  const came = results.map(({ sequence }) => sequence);
  for (const sequences of [...order, repeats]) {
    expect(came.filter((sequence) => sequences.includes(sequence))).toEqual(sequences);
  }
  const renewals = new Map(
    results.map(({ sequence, result }) => [
      sequence,
      result?.result.case === "renewed" ? result.result.value.result : undefined,
    ]),
  );
  for (const [first = 0n, second = 0n, , last = 0n] of order) {
    expect([first, second, last].map((sequence) => renewals.get(sequence))).toEqual([
      RenewLeaseResponse_Result.RENEWED,
      RenewLeaseResponse_Result.RENEWED,
      RenewLeaseResponse_Result.ALREADY_ENDED,
    ]);
  }
  const acquired = results.filter(({ sequence }) => repeats.includes(sequence)).map(({ result }) => leaseOf(result));
  expect(new Set(acquired.map((lease) => lease?.leaseId)).size).toBe(1);
});

test("an acquire that waits is answered at once, and again when it is granted", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId } = await held(tenant, "build");
  const session = openSession(tenant);
  const waits = session.send(acquire(attempt("build", patiently)));
  const [waiting] = await session.next(1);
  expect(waiting?.sequence).toBe(waits);
  expect(leaseOf(waiting?.result)).toMatchObject({
    state: LeaseState.WAITING,
    waiting: { reason: WaitReason.POOL_FULL, position: 1 },
  });
  session.send(release(leaseId));
  const later = await session.next(2);
  const granted = later.find(({ sequence }) => sequence === waits)?.result;
  expect(leaseOf(granted)).toMatchObject({ state: LeaseState.ACTIVE, leaseId: leaseOf(waiting?.result)?.leaseId });
  expect(granted?.result.value).toMatchObject({ ttl: expect.anything(), renewAfter: expect.anything() });
  session.close();
  expect(await session.rest()).toEqual([]);
});

test("a wait that ends without a grant has its second result too", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  await held(tenant, "build");
  const session = openSession(tenant);
  const waits = session.send(acquire(attempt("build", { wait: { seconds: 0n, nanos: 200_000_000 } })));
  expect(leaseOf((await session.next(1))[0]?.result)?.state).toBe(LeaseState.WAITING);
  const second = session.next(1);
  await until("the wait is over", 10_000, async () => {
    await runOut(waitOver(service.context, service.desk));
    return (await service.database.capacityLease.count({ where: { tenantId, state: "CANCELLED" } })) || undefined;
  });
  const [over] = await second;
  expect(over?.sequence).toBe(waits);
  expect(leaseOf(over?.result)?.state).toBe(LeaseState.CANCELLED);
  session.cancel();
});

test("what another process grants is told too", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId } = await held(tenant, "build");
  const other = await startCapacity({ database });
  try {
    const session = openSession(tenant);
    session.send(acquire(attempt("build", patiently)));
    await session.next(1);
    await other.as(tenantId).releaseLease({ leaseId });
    const [granted] = await session.next(1);
    expect(leaseOf(granted?.result)?.state).toBe(LeaseState.ACTIVE);
    session.cancel();
  } finally {
    await other.close();
  }
});

test("once the caller has closed its side, waits aren't waited for: their leases stay in the queue", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId } = await held(tenant, "build");
  const session = openSession(tenant);
  session.send(acquire(attempt("build", patiently)));
  session.close();
  const results = await session.rest();
  expect(results.map(({ result }) => leaseOf(result)?.state)).toEqual([LeaseState.WAITING]);
  await tenant.releaseLease({ leaseId });
  await activeLeases(1);
});

test("another tenant's lease is NOT_FOUND", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId, fencingToken } = await held(tenant, "build");
  const session = openSession(service.as(`tenant-${uuidv7()}`));
  session.send(renew(leaseId, fencingToken));
  session.send(release(leaseId));
  session.close();
  const results = await session.rest();
  expect(results.map(({ result }) => failureOf(result).code)).toEqual([Code.NotFound, Code.NotFound]);
});
