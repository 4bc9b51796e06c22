import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { ErrorInfoSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import {
  LeaseOperationSchema,
  RenewLeaseResponse_Result,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { CapacityResource, LeaseState, WaitReason } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  patiently,
  startCapacity,
  staticPool,
} from "../../_support/execution-capacity.ts";
import { acquire, failureOf, held, leaseOf, release, renew } from "./lease-calls.ts";

let service: CapacityService;
let tenant: CapacityClient;

beforeAll(async () => {
  service = await startCapacity();
});
afterAll(() => service.close());
beforeEach(() => {
  tenant = service.as(`tenant-${uuidv7()}`);
});
afterEach(async () => {
  expect(await service.differences()).toEqual([]);
});

type Operations = NonNullable<Parameters<CapacityClient["batchLeases"]>[0]["operations"]>;

const batch = async (operations: Operations) => (await tenant.batchLeases({ operations })).results;

test("acquires, renews and releases, each with the response of its own call, in order", async () => {
  await tenant.setWorkerPool(staticPool("build", 10));
  const { leaseId, fencingToken } = await held(tenant, "build");
  const other = await held(tenant, "build");
  const results = await batch([acquire(attempt("build")), renew(leaseId, fencingToken), release(other.leaseId)]);
  expect(results.map(({ result }) => result.case)).toEqual(["acquired", "renewed", "released"]);
  const [acquired, renewed, released] = results;
  expect(acquired?.result.value).toMatchObject({
    lease: { state: LeaseState.ACTIVE, poolId: "build", resource: CapacityResource.RUNS },
    ttl: { seconds: expect.any(BigInt) },
    renewAfter: expect.anything(),
  });
  expect(renewed?.result.value).toMatchObject({ result: RenewLeaseResponse_Result.RENEWED, lease: { leaseId } });
  expect(released?.result.value).toMatchObject({ lease: { leaseId: other.leaseId, state: LeaseState.RELEASED } });
});

test("a wrong operation fails alone, with the path of each field in the batch", async () => {
  await tenant.setWorkerPool(staticPool("build", 10));
  const results = await batch([
    acquire(attempt("build")),
    acquire({ ...attempt("build"), ttl: { seconds: 0n } }),
    {},
    renew("not-a-uuid", 0n),
    acquire({ ...attempt("build"), holderId: "a\0b" }),
    acquire({ ...attempt(""), ttl: { seconds: 60n } }),
    acquire(attempt("build")),
  ]);
  expect(results.map(({ result }) => result.case)).toEqual([
    "acquired",
    "error",
    "error",
    "error",
    "error",
    "error",
    "acquired",
  ]);
  const failures = results.filter(({ result }) => result.case === "error").map(failureOf);
  expect(failures.map(({ code }) => code)).toEqual(Array(5).fill(Code.InvalidArgument));
  expect(failures.map(({ fields }) => fields)).toEqual([
    ["operations[1].acquire.ttl"],
    ["operations[2]"],
    ["operations[3].renew.leaseId", "operations[3].renew.fencingToken"],
    ["operations[4].acquire.holderId"],
    ["operations[5].acquire.poolId"],
  ]);
  expect(failures[1]?.message).toBe("operations[2]: names none of acquire, renew, release");
});

test("refuses numbers that no enum value has, naming the field", async () => {
  await tenant.setWorkerPool(staticPool("build", 10));
  const usual = { projectId: "p1", holderKind: "Attempt", holderId: "a-1", ttl: "60s" };
  const selecting = (changes: JsonObject) => fromJson(LeaseOperationSchema, { acquire: { ...usual, ...changes } });
  const results = await batch([
    selecting({ poolId: "build", resource: 99 }),
    selecting({ selector: { kind: 77, placement: 9 } }),
    selecting({ poolId: "build", selector: { kind: "POOL_KIND_RUN_WORKERS" } }),
  ]);
  expect(results.map((one) => failureOf(one).fields)).toEqual([
    ["operations[0].acquire.resource"],
    ["operations[1].acquire.selector.kind", "operations[1].acquire.selector.placement"],
    ["operations[2].acquire.selector"],
  ]);
});

test("an operation's error is the one that its own call would have had", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId, fencingToken } = await held(tenant, "build");
  const unknown = uuidv7();
  const full = attempt("build");
  const alone = await Promise.all(
    [
      tenant.acquireLease(full),
      tenant.releaseLease({ leaseId: unknown }),
      tenant.releaseLease({ leaseId, fencingToken: fencingToken + 1n }),
    ].map((call) => call.then(() => undefined, ConnectError.from)),
  );
  const together = await batch([acquire(full), release(unknown), release(leaseId, fencingToken + 1n)]);
  expect(together.map((one) => ({ code: failureOf(one).code, message: failureOf(one).message }))).toEqual(
    alone.map((error) => ({ code: error?.code, message: error?.rawMessage })),
  );
  expect(together.map((one) => failureOf(one).reasons)).toEqual(
    alone.map((error) => error?.findDetails(ErrorInfoSchema).map(({ reason }) => reason)),
  );
  expect(together.map((one) => failureOf(one).retries)).toEqual([1, 0, 0]);
  expect((await tenant.getLease({ leaseId })).lease?.state).toBe(LeaseState.ACTIVE);
});

test("what one holder or lease is asked takes effect in the batch's order", async () => {
  await tenant.setWorkerPool(staticPool("build", 100));
  const leases = await Promise.all(Array.from({ length: 30 }, () => held(tenant, "build")));
  const holders = Array.from({ length: 30 }, () => attempt("build"));
  const results = await batch([
    ...leases.flatMap(({ leaseId, fencingToken }) => [renew(leaseId, fencingToken, 600n), release(leaseId)]),
    ...leases.map(({ leaseId, fencingToken }) => renew(leaseId, fencingToken)),
    ...holders.map(acquire),
    ...holders.map(acquire),
  ]);
  const renewals = results.flatMap(({ result }) => (result.case === "renewed" ? [result.value.result] : []));
  expect(renewals).toEqual([
    ...leases.map(() => RenewLeaseResponse_Result.RENEWED),
    ...leases.map(() => RenewLeaseResponse_Result.ALREADY_ENDED),
  ]);
  const acquired = results.slice(90).map((one) => leaseOf(one)?.leaseId);
  expect(acquired.slice(30)).toEqual(acquired.slice(0, 30));
  expect(new Set(acquired).size).toBe(30);
});

test("those that wait are answered with why and at which place", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  await held(tenant, "build");
  const results = await batch([1, 2, 3].map(() => acquire(attempt("build", patiently))));
  const waiting = results.map((one) => leaseOf(one)?.waiting);
  expect(waiting.map((at) => at?.reason)).toEqual(Array(3).fill(WaitReason.POOL_FULL));
  expect(waiting.map((at) => at?.position).sort()).toEqual([1, 2, 3]);
});

test("another tenant's lease is NOT_FOUND, and stays as it is", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId, fencingToken } = await held(tenant, "build");
  const stranger = service.as(`tenant-${uuidv7()}`);
  const { results } = await stranger.batchLeases({ operations: [release(leaseId), renew(leaseId, fencingToken)] });
  expect(results.map((one) => failureOf(one).code)).toEqual([Code.NotFound, Code.NotFound]);
  expect((await tenant.getLease({ leaseId })).lease?.state).toBe(LeaseState.ACTIVE);
});

test("finds a lease whose id is written in capitals", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const { leaseId, fencingToken } = await held(tenant, "build");
  const [renewed] = await batch([renew(leaseId.toUpperCase(), fencingToken)]);
  expect(renewed?.result.value).toMatchObject({ result: RenewLeaseResponse_Result.RENEWED, lease: { leaseId } });
});

test("takes a thousand operations and no more, and not none", async () => {
  await tenant.setWorkerPool(staticPool("build", 2_000));
  const many = (count: number) => Array.from({ length: count }, () => acquire(attempt("build")));
  const full = await batch(many(1_000));
  expect(full.every((one) => leaseOf(one)?.state === LeaseState.ACTIVE)).toBe(true);
  await expect(batch(many(1_001))).rejects.toMatchObject({ code: Code.InvalidArgument });
  await expect(batch([])).rejects.toMatchObject({ code: Code.InvalidArgument });
  await expect(tenant.batchLeases({ operations: many(1_001) })).rejects.toThrow(/operations/);
});
