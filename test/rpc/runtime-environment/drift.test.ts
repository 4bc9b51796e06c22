import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { SpecificationDeclaredSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import {
  DriftKind,
  DriftOrigin,
  FindingSeverity,
  FindingState,
  Health,
  SyncStatus,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied, type Applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  eventAbout,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

let service: EnvironmentService;
let tenantId: string;
let tenant: EnvironmentClient;
let environmentId: string;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
});

const text = (value: string) => create(ValueSchema, { kind: { case: "stringValue", value } });
const edited = {
  address: "terraform_data.app",
  kind: DriftKind.ATTRIBUTE_CHANGED,
  attribute: "input.version",
  applied: text("1.4.0"),
  observed: text("1.3.9"),
};
const specificationId = uuidv7();
const seen = async (drift: Applied["drift"], changes: Partial<Omit<Applied, "$typeName">> = {}) => {
  service.provisioning.applied.set(environmentId, [applied({ specificationId, drift: drift ?? [], ...changes })]);
  return tenant.observeEnvironment({ environmentId });
};
const findings = async () => (await tenant.listFindings({ environmentId })).findings;
const detected = async () =>
  (await service.announced(tenantId)).filter(({ event }) => event === "RuntimeDriftDetected");
const future = timestampFromDate(new Date(Date.now() + 3_600_000));
/** Findings are counted once a minute: lets that minute be over. */
const minuteLater = async () => {
  const lastSeenAt = new Date(Date.now() - 61_000);
  await service.database.finding.updateMany({ where: { environmentId }, data: { lastSeenAt } });
};

test("environments are listed by their health, and those alone that drift", async () => {
  const calm = await service.created(tenantId);
  const listed = async (filter: { health?: Health; drifted?: boolean }) =>
    (await tenant.listEnvironments(filter)).environments.map((environment) => environment.environmentId);
  const { environment } = await seen([edited]);
  expect(await listed({ drifted: true })).toEqual([environmentId]);
  expect(await listed({ health: environment?.health ?? Health.UNSPECIFIED })).toEqual([environmentId]);
  expect(await listed({ health: Health.UNKNOWN })).toEqual([calm]);
  await seen([]);
  expect(await listed({ drifted: true })).toEqual([]);
});

test("drift is found and announced once, counted when seen again, and resolved when gone", async () => {
  expect((await seen([edited])).environment?.sync).toBe(SyncStatus.DRIFTED);
  await minuteLater();
  await seen([edited]);
  const [finding, ...others] = await findings();
  expect(others).toEqual([]);
  expect(finding).toMatchObject({
    state: FindingState.OPEN,
    kind: DriftKind.ATTRIBUTE_CHANGED,
    resource: "terraform_data.app",
    attribute: "input.version",
    declared: text("1.4.0"),
    observed: text("1.3.9"),
    occurrences: 2,
    severity: FindingSeverity.MEDIUM,
    origin: DriftOrigin.WORLD,
    observer: "engine",
  });
  expect(await detected()).toMatchObject([{ data: { findingId: finding?.findingId, resource: "terraform_data.app" } }]);

  expect((await seen([])).environment?.sync).toBe(SyncStatus.IN_SYNC);
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED, occurrences: 2 }]);
});

test("a finding that is seen again as it was is written at most once a minute", async () => {
  await seen([edited]);
  const first = await service.database.finding.findFirstOrThrow({ where: { environmentId } });
  await seen([edited]);
  expect(await service.database.finding.findFirstOrThrow({ where: { environmentId } })).toEqual(first);
});

test("the same drift after its resolution is a new finding, which refers to the old one", async () => {
  await seen([edited]);
  await seen([]);
  await seen([edited]);
  const [again, before] = await findings();
  expect([again?.state, before?.state]).toEqual([FindingState.OPEN, FindingState.RESOLVED]);
  expect(again?.previousFindingId).toBe(before?.findingId);
  expect(before?.previousFindingId).toBeUndefined();
  expect(await detected()).toHaveLength(2);
  await seen([]);
  await seen([edited]);
  expect((await findings())[0]?.previousFindingId).toBe(again?.findingId);
});

test("a declared version that isn't applied yet shows in the origin of what drifts, and is no drift itself", async () => {
  await seen([edited]);
  const declared = { specificationId: uuidv7(), environmentId, tenantId, kind: SpecificationKind.BASELINE, version: 2 };
  const event = eventAbout(
    SpecificationDeclaredSchema,
    { ...declared, programVersion: "network@1.0.0" },
    { id: environmentId, tenantId },
  );
  await service.deliver(event);
  await service.deliver(event);
  expect(await findings()).toMatchObject([{ origin: DriftOrigin.WORLD_AND_SPECIFICATION }]);
  expect((await seen([])).environment?.sync).toBe(SyncStatus.PENDING_SPECIFICATION);
  expect((await findings()).filter(({ state }) => state !== FindingState.RESOLVED)).toEqual([]);
});

test("what drifts in production is more severe", async () => {
  const at = { environmentId: uuidv7(), projectId: uuidv7(), tenantId, class: EnvironmentClass.PRODUCTION };
  await service.deliver(eventAbout(EnvironmentCreatedSchema, at, { id: at.environmentId, tenantId }));
  environmentId = at.environmentId;
  await seen([edited, { address: "terraform_data.db", kind: DriftKind.RESOURCE_MISSING }]);
  const found = (await findings()).map(({ kind, severity }) => [kind, severity]);
  expect(found).toContainEqual([DriftKind.ATTRIBUTE_CHANGED, FindingSeverity.HIGH]);
  expect(found).toContainEqual([DriftKind.RESOURCE_MISSING, FindingSeverity.CRITICAL]);
});

test("a finding that drifts further keeps its identity and shows what is there now", async () => {
  await seen([edited]);
  const before = await service.database.finding.findFirstOrThrow({ where: { environmentId } });
  await seen([{ ...edited, observed: text("1.0.0") }]);
  expect(await findings()).toMatchObject([{ observed: text("1.0.0"), occurrences: 2 }]);
  const after = await service.database.finding.findFirstOrThrow({ where: { environmentId } });
  expect(after.changedAt.getTime()).toBeGreaterThan(before.changedAt.getTime());
  expect(await detected()).toHaveLength(1);
});

test("the same address in two kinds of specification is two findings", async () => {
  const release = applied({ kind: SpecificationKind.RELEASE, drift: [edited] });
  service.provisioning.applied.set(environmentId, [applied({ drift: [edited] }), release]);
  await tenant.observeEnvironment({ environmentId });
  expect(await findings()).toHaveLength(2);
});

test("a missing resource degrades the environment's health", async () => {
  const missing = { address: "terraform_data.db", kind: DriftKind.RESOURCE_MISSING };
  expect((await seen([missing])).environment?.health).toBe(Health.DEGRADED);
  expect((await seen([missing], { resources: [] })).environment?.health).toBe(Health.MISSING);
});

test("findings of a specification that is no longer applied are resolved", async () => {
  await seen([edited]);
  service.provisioning.applied.set(environmentId, []);
  const { environment } = await tenant.observeEnvironment({ environmentId });
  expect(environment?.resources).toEqual([]);
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
});

test("the database refuses a second unresolved finding of one fingerprint", async () => {
  await seen([edited]);
  const { declared, observed, ...finding } = await service.database.finding.findFirstOrThrow({
    where: { environmentId },
  });
  expect([declared, observed]).toEqual(["1.4.0", "1.3.9"]);
  await expect(service.database.finding.create({ data: { ...finding, id: uuidv7() } })).rejects.toThrow();
});

test("a suppressed finding is no drift, is counted in silence, and opens when its time is over", async () => {
  await seen([edited]);
  const findingId = (await findings())[0]?.findingId ?? "";
  const { finding } = await tenant.suppressDrift({ findingId, reason: "known migration", until: future });
  expect(finding).toMatchObject({ state: FindingState.SUPPRESSED, suppressedReason: "known migration" });
  await minuteLater();
  expect((await seen([edited])).environment?.sync).toBe(SyncStatus.IN_SYNC);
  expect(await findings()).toMatchObject([{ state: FindingState.SUPPRESSED, occurrences: 2 }]);
  expect(await service.runOut("suppression-end")).not.toContain(findingId);

  const suppressedUntil = new Date(Date.now() - 1_000);
  await service.database.finding.update({ where: { id: findingId }, data: { suppressedUntil } });
  expect(await service.runOut("suppression-end")).toContain(findingId);
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
  expect(await detected()).toHaveLength(2);
});

test("a suppression can be taken back, and a suppressed finding is resolved when its drift is gone", async () => {
  await seen([edited]);
  const findingId = (await findings())[0]?.findingId ?? "";
  await tenant.suppressDrift({ findingId, reason: "known", until: future });
  expect((await tenant.unsuppressDrift({ findingId })).finding?.state).toBe(FindingState.OPEN);
  await tenant.suppressDrift({ findingId, reason: "known", until: future });
  await seen([]);
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
  const { code, rawMessage } = await refusalOf(tenant.unsuppressDrift({ findingId }));
  expect(code).toBe(Code.FailedPrecondition);
  expect(rawMessage).toContain(`DriftFinding ${findingId} is RESOLVED, which is final: unsuppress refused`);
});

test.each(["", "  "])("a suppression whose reason is '%s' is refused by field", async (reason) => {
  await seen([edited]);
  const findingId = (await findings())[0]?.findingId ?? "";
  const { code, rawMessage } = await refusalOf(tenant.suppressDrift({ findingId, reason, until: future }));
  expect(code).toBe(Code.InvalidArgument);
  expect(rawMessage).toMatch(/^reason: /);
});

test("a suppression until an instant that has passed is refused by field", async () => {
  await seen([edited]);
  const findingId = (await findings())[0]?.findingId ?? "";
  const until = timestampFromDate(new Date(Date.now() - 1_000));
  const { code, rawMessage } = await refusalOf(tenant.suppressDrift({ findingId, reason: "known", until }));
  expect(code).toBe(Code.InvalidArgument);
  expect(rawMessage).toMatch(/^until: is not in the future/);
});

test("findings are listed by kind, and by severity with all that is worse", async () => {
  const missing = { address: "terraform_data.db", kind: DriftKind.RESOURCE_MISSING };
  await seen([edited, missing, { address: "terraform_data.extra", kind: DriftKind.RESOURCE_UNMANAGED }]);
  const listed = async (filter: { kind?: DriftKind; severity?: FindingSeverity }) =>
    (await tenant.listFindings({ environmentId, ...filter })).findings.map(({ kind }) => kind);
  expect(await listed({ kind: DriftKind.RESOURCE_UNMANAGED })).toEqual([DriftKind.RESOURCE_UNMANAGED]);
  expect(await listed({ severity: FindingSeverity.HIGH })).toEqual([DriftKind.RESOURCE_MISSING]);
  expect(await listed({ severity: FindingSeverity.LOW })).toHaveLength(3);
  expect(await listed({ kind: DriftKind.ATTRIBUTE_CHANGED, severity: FindingSeverity.HIGH })).toEqual([]);
});

test("findings are listed newest first, by state and page", async () => {
  await seen([edited]);
  await seen([edited, { ...edited, attribute: "input.name" }, { ...edited, attribute: "input.port" }]);
  const first = await tenant.listFindings({ environmentId, state: FindingState.OPEN, pageSize: 2 });
  const { nextPageToken: pageToken } = first;
  const rest = await tenant.listFindings({ environmentId, state: FindingState.OPEN, pageSize: 2, pageToken });
  expect(first.findings).toHaveLength(2);
  expect(rest.findings).toMatchObject([{ attribute: "input.version" }]);
  expect(rest.nextPageToken).toBe("");
  const { code } = await refusalOf(tenant.listFindings({ environmentId, pageSize: 2, pageToken }));
  expect(code).toBe(Code.InvalidArgument);
});
