import { createContextValues, createHandlerContext } from "@connectrpc/connect";
import { expect, test } from "@jest/globals";
import {
  decode,
  envelop,
  type EventMeta,
  MalformedEvent,
  parseCloudEvent,
} from "@runtime-cloud/contracts/events/cloud-event";
import { eventCatalogue, eventNamed, eventOf, eventOnTopic } from "@runtime-cloud/contracts/events/event-catalogue";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import {
  CapacityLeaseReleasedSchema,
  QuotaChangedSchema,
} from "@runtime-cloud/contracts/runtimecloud/events/v1/capacity_pb";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { PromotionApprovedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/promotion_pb";
import { AttemptOutcomeRecordedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import { AttemptOutcome } from "@runtime-cloud/contracts/runtimecloud/types/v1/run_control_pb";
import { SandboxReleasedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/tooling_pb";
import { LeaseState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { callCause, deadlineCause, eventCause } from "@runtime-cloud/eventing/cause";
import { toCloudEvent } from "@runtime-cloud/eventing/to-cloud-event";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { principalKey } from "@runtime-cloud/service-kit/principal";
import { attemptRecorded, promotionApproved, sandboxReleased } from "./control-plane-events.ts";

const leaseId = uuidv7();
const meta: EventMeta = {
  id: uuidv7(),
  at: new Date("2026-01-02T03:04:05.678Z"),
  subject: { id: leaseId, tenantId: "tenant-a", projectId: "project-1" },
  aggregateVersion: 4,
  cause: { correlationId: "request-1", traceparent: "00-1-2-01" },
};
const fields = {
  leaseId,
  tenantId: "tenant-a",
  holderKind: "Attempt",
  holderId: "attempt-1",
  poolId: "runners",
  state: LeaseState.RELEASED,
  executionSeconds: 9_007_199_254_740_993n,
};
const released = { type: "CapacityLeaseReleased" as const, ...fields };

test("reads back what it wrote, through JSON, 64-bit numbers included", () => {
  const sent = toCloudEvent(released, meta);
  const read = parseCloudEvent(JSON.parse(JSON.stringify(sent)));
  expect(read).toEqual({
    specversion: "1.0",
    id: meta.id,
    source: "/runtime-cloud/ExecutionCapacityService",
    type: "capacity.leases.v1.capacity-lease-released",
    subject: leaseId,
    time: "2026-01-02T03:04:05.678Z",
    datacontenttype: "application/json",
    dataschema: "runtimecloud.events.v1.CapacityLeaseReleased",
    data: expect.objectContaining({ executionSeconds: "9007199254740993", state: "LEASE_STATE_RELEASED" }),
    tenantid: "tenant-a",
    projectid: "project-1",
    correlationid: "request-1",
    traceparent: "00-1-2-01",
    aggregateversion: 4,
  });
  expect(decode(CapacityLeaseReleasedSchema, read)).toMatchObject(fields);
});

test("writes zeroes out, for consumers without the proto", () => {
  const zeroes = { quotaId: uuidv7(), tenantId: "tenant-a" };
  expect(envelop(QuotaChangedSchema, zeroes, meta).data).toMatchObject({ concurrentRuns: 0, concurrentSandboxes: 0 });
});

test("refuses to announce what breaks the event's own rules, or is over 64 KiB", () => {
  expect(() => toCloudEvent({ ...released, holderId: "" }, meta)).toThrow(
    /CapacityLeaseReleased breaks its rules: holder_id/,
  );
  expect(() => toCloudEvent({ ...released, holderId: "x".repeat(66_000) }, meta)).toThrow(
    /66\d\d\d bytes; an event may have 65536/,
  );
});

test.each([
  ["no envelope", "hello", /envelope: /],
  ["another version", { ...sandboxReleased(), specversion: "0.3" }, /specversion: /],
  ["an id that is no UUID", { ...sandboxReleased(), id: "42" }, /id: /],
  ["no tenant", { ...sandboxReleased(), tenantid: undefined }, /tenantid: /],
  ["a tenant that can't be stored", { ...sandboxReleased(), tenantid: "a\0b" }, /tenantid: holds a NUL character/],
  ["data that is no object", { ...sandboxReleased(), data: [1] }, /data: /],
  ["data nested without end", { ...sandboxReleased(), data: { deep: nested(20_000) } }, /nested too deeply/],
])("refuses an envelope with %s, naming the field", (_what, data, problem) => {
  expect(() => parseCloudEvent(data)).toThrow(MalformedEvent);
  expect(() => parseCloudEvent(data)).toThrow(problem);
});

test("ignores fields it doesn't know, in the envelope and in the event", () => {
  const read = parseCloudEvent({ ...sandboxReleased({ mood: "cheerful" }), sequence: "7" });
  expect(read).not.toHaveProperty("sequence");
  expect(decode(SandboxReleasedSchema, read)).not.toHaveProperty("mood");
});

test("keeps an enum number that it doesn't know", () => {
  const event = attemptRecorded();
  const read = decode(AttemptOutcomeRecordedSchema, { ...event, data: { ...event.data, outcome: 99 } });
  expect(read.outcome).toBe(99);
});

test("reads an enum name that it doesn't know as unspecified, and still refuses one that is missing or empty", () => {
  const named = (outcome: string) => decode(AttemptOutcomeRecordedSchema, attemptRecorded({ outcome }));
  expect(named("ATTEMPT_OUTCOME_PREEMPTED").outcome).toBe(AttemptOutcome.UNSPECIFIED);
  expect(() => named("")).toThrow(/AttemptOutcomeRecorded breaks its rules: outcome: value is required/);
  expect(() => named("ATTEMPT_OUTCOME_UNSPECIFIED")).toThrow(/outcome: value is required/);
  const { outcome, ...data } = attemptRecorded().data;
  expect(outcome).toBe("ATTEMPT_OUTCOME_SUCCEEDED");
  expect(() => decode(AttemptOutcomeRecordedSchema, { ...attemptRecorded(), data })).toThrow(
    /outcome: value is required/,
  );
});

test("names the other rules that an event with an unknown enum name breaks", () => {
  const event = attemptRecorded({ outcome: "ATTEMPT_OUTCOME_PREEMPTED", runId: "42" });
  expect(() => decode(AttemptOutcomeRecordedSchema, event)).toThrow(/breaks its rules: run_id: .*UUID/i);
});

test("refuses an event that breaks its rules, never quoting its values", () => {
  const secret = "hunter2-not-a-uuid";
  expect(() => decode(SandboxReleasedSchema, sandboxReleased({ sandboxId: secret }))).toThrow(/sandbox_id/);
  expect(() => decode(SandboxReleasedSchema, sandboxReleased({ sandboxId: secret }))).not.toThrow(secret);
});

test.each([
  ["a NUL character", "a\0b", /parameters\["deep"\]\[0\] holds a NUL character/],
  ["half of a surrogate pair", "\ud83d", /parameters\["deep"\]\[0\] holds half of a surrogate pair/],
])("refuses an event with %s anywhere", (_what, text, problem) => {
  const event = promotionApproved({ parameters: { deep: [text] } });
  expect(() => decode(PromotionApprovedSchema, event)).toThrow(MalformedEvent);
  expect(() => decode(PromotionApprovedSchema, event)).toThrow(problem);
  expect(() => decode(PromotionApprovedSchema, promotionApproved())).not.toThrow();
});

test("catalogues every event once by name and topic, with its producer and consumers", () => {
  expect(eventCatalogue).toHaveLength(46);
  expect(new Set(eventCatalogue.map(({ topic }) => topic)).size).toBe(46);
  for (const event of eventCatalogue) {
    expect(event.consumers.length).toBeGreaterThan(0);
    expect(eventNamed(event.name)).toBe(event);
    expect(eventOnTopic(event.topic)).toBe(event);
    expect(eventOf(event.schema)).toBe(event);
  }
  expect(eventOf(EnvironmentCreatedSchema)).toMatchObject({
    topic: "projects.environments.v1.environment-created",
    consumers: expect.arrayContaining(["IaCProvisioningService", "RuntimeEnvironmentService"]),
  });
});

test("takes a call's correlation and trace over when they are well formed, and makes them when not", () => {
  const call = (headers: Record<string, string>) =>
    callCause(
      createHandlerContext({
        service: ExecutionCapacityService,
        method: ExecutionCapacityService.method.setQuota,
        protocolName: "grpc",
        requestMethod: "POST",
        url: "http://localhost/",
        requestHeader: headers,
        contextValues: createContextValues().set(principalKey, {
          subject: "alice",
          tenantId: "tenant-a",
          scopes: new Set<string>(),
        }),
      }),
      () => "made",
    );
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  expect(call({ "x-correlation-id": "order-7", traceparent })).toEqual({
    actor: "alice",
    correlationId: "order-7",
    traceparent,
  });
  const made = call({ "x-correlation-id": "has spaces in it", traceparent: "garbage" });
  expect(made).toEqual({
    actor: "alice",
    correlationId: "made",
    traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
  });
});

test("carries an event's correlation on, with the event as the cause", () => {
  const event = sandboxReleased({}, { correlationid: "order-7" });
  expect(eventCause(event, "ReleaseSandboxLease")).toEqual({
    actor: "event:ReleaseSandboxLease",
    correlationId: "order-7",
    causationId: event.id,
  });
  const uncorrelated = parseCloudEvent({ ...event, correlationid: undefined });
  expect(eventCause(uncorrelated, "ReleaseSandboxLease").correlationId).toBe(event.id);
  expect(deadlineCause("lease-expiry", () => "made")).toMatchObject({
    actor: "deadline:lease-expiry",
    correlationId: "made",
  });
});

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}
