import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import {
  AcquireLeaseRequestSchema,
  ReleaseLeaseRequestSchema,
  RenewLeaseRequestSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { isPlainAcquire, isPlainRelease, isPlainRenew } from "@runtime-cloud/execution-capacity/plain-requests";
import { requestProblems } from "@runtime-cloud/service-kit/validation";
import fc from "fast-check";

/** Mostly what a rule draws its line at. */
const text = fc.oneof(
  fc.constantFrom(
    "",
    "a",
    "-a",
    "A",
    "a-1",
    "a".repeat(63),
    "a".repeat(64),
    "a".repeat(128),
    "a".repeat(129),
    "\0",
    "é",
  ),
  fc.string({ maxLength: 4 }),
);
const number = fc.oneof(
  fc.constantFrom(-1, 0, 1, 2, 3, 1_000, 1_001, 10_000, 10_001),
  fc.integer({ max: 2 ** 31 - 1 }),
);
const duration = fc.record({
  seconds: fc.constantFrom(-1n, 0n, 1n, 60n, 86_399n, 86_400n, 86_401n),
  nanos: fc.constantFrom(-1, 0, 1, 999_999_999, 1_000_000_000),
});
const uuid = fc.oneof(fc.uuid(), text, fc.constantFrom("0198F7A0-0000-7000-8000-000000000000"));
const token = fc.constantFrom(-1n, 0n, 1n, 2n ** 62n);

const acquires = fc.record(
  {
    poolId: text,
    projectId: text,
    holderKind: text,
    holderId: text,
    units: number,
    priority: number,
    resource: number,
    ttl: duration,
    wait: duration,
  },
  { requiredKeys: [] },
);

test("what is plain keeps the rules of the proto, whatever comes", () => {
  fc.assert(
    fc.property(acquires, (fields) => {
      const request = create(AcquireLeaseRequestSchema, fields);
      if (isPlainAcquire(request)) expect(requestProblems(AcquireLeaseRequestSchema, request)).toEqual([]);
    }),
    { numRuns: 2_000 },
  );
  fc.assert(
    fc.property(uuid, token, fc.option(duration, { nil: undefined }), (leaseId, fencingToken, ttl) => {
      const renew = create(RenewLeaseRequestSchema, { leaseId, fencingToken, ...(ttl && { ttl }) });
      if (isPlainRenew(renew)) expect(requestProblems(RenewLeaseRequestSchema, renew)).toEqual([]);
      const release = create(ReleaseLeaseRequestSchema, { leaseId, fencingToken });
      if (isPlainRelease(release)) expect(requestProblems(ReleaseLeaseRequestSchema, release)).toEqual([]);
    }),
    { numRuns: 2_000 },
  );
});

const usual = { poolId: "build", projectId: "p1", holderKind: "Attempt", holderId: "a-1", ttl: "60s" };

test("one field over the line makes a plain request plain no more", () => {
  const plain = (changes: JsonObject) => isPlainAcquire(fromJson(AcquireLeaseRequestSchema, { ...usual, ...changes }));
  expect(plain({})).toBe(true);
  expect(plain({ units: 10_000, priority: 1_000, resource: 2, wait: "86399s" })).toBe(true);
  const lines: JsonObject[] = [
    { units: 10_001 },
    { priority: 1_001 },
    { resource: 3 },
    { ttl: "0s" },
    { ttl: "86400.5s" },
    { wait: "-1s" },
    { holderKind: "1" },
    { projectId: "\0" },
    { poolId: "Build" },
    { poolId: "" },
  ];
  expect(lines.filter(plain)).toEqual([]);
});

test("what holders send all the time is plain", () => {
  const leaseId = "0198f7a0-0000-7000-8000-000000000000";
  const renew = create(RenewLeaseRequestSchema, { leaseId, fencingToken: 1n, ttl: { seconds: 60n } });
  expect([isPlainRenew(renew), isPlainRelease(create(ReleaseLeaseRequestSchema, { leaseId }))]).toEqual([true, true]);
});
