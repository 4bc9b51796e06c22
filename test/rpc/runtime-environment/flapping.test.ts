import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { DecideReconciliationRequest_Decision as Decision } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import {
  DriftKind,
  FindingState,
  ProposalState,
  ReconciliationDirection,
  SyncStatus,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied, type Applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

const DELAY_SECONDS = 60;

let service: EnvironmentService;
let tenantId: string;
let tenant: EnvironmentClient;
let environmentId: string;
let specificationId: string;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
  specificationId = uuidv7();
  service.provisioning.firstState = RunState.QUEUED;
  await configured({ proposeAfter: { seconds: BigInt(DELAY_SECONDS) } });
});

const configured = (changes: { proposeAfter?: { seconds: bigint } }) =>
  tenant.configureEnvironment({
    environmentId,
    observeEvery: { seconds: 60n },
    staleAfter: { seconds: 300n },
    ...changes,
  });
const text = (value: string) => create(ValueSchema, { kind: { case: "stringValue", value } });
const drift = (observed = "edited", attribute = "input.a") => ({
  address: "terraform_data.app",
  kind: DriftKind.ATTRIBUTE_CHANGED,
  attribute,
  applied: text("declared"),
  observed: text(observed),
});
const seen = (facts: NonNullable<Applied["drift"]>, changes: Partial<Omit<Applied, "$typeName">> = {}) => {
  service.provisioning.applied.set(environmentId, [applied({ specificationId, drift: facts, ...changes })]);
  return tenant.observeEnvironment({ environmentId });
};
const findings = async () => (await tenant.listFindings({ environmentId })).findings;
const detected = async () =>
  (await service.announced(tenantId)).filter(({ event }) => event === "RuntimeDriftDetected");
const proposals = async () => (await tenant.listProposals({ environmentId })).proposals;
/** Lets the delay be over for what is noted of the findings. */
const delayLater = async (column: "vanishedAt" | "changedAt") => {
  const before = new Date(Date.now() - (DELAY_SECONDS + 1) * 1_000);
  const where = column === "vanishedAt" ? { environmentId, vanishedAt: { not: null } } : { environmentId };
  await service.database.finding.updateMany({ where, data: { [column]: before } });
};

test("a drift that stays away for less than the delay is the same finding, told once", async () => {
  await seen([drift()]);
  for (let round = 0; round < 3; round += 1) {
    expect((await seen([])).environment?.sync).toBe(SyncStatus.IN_SYNC);
    const [away] = await findings();
    expect(away).toMatchObject({ state: FindingState.OPEN, vanishedAt: expect.anything() });
    expect((await seen([drift()])).environment?.sync).toBe(SyncStatus.DRIFTED);
    const [back] = await findings();
    expect(back).toMatchObject({ findingId: away?.findingId, state: FindingState.OPEN });
    expect(back?.vanishedAt).toBeUndefined();
  }
  expect(await findings()).toHaveLength(1);
  expect(await detected()).toHaveLength(1);
});

test("coming back counts as a change, and staying away doesn't begin anew with each look", async () => {
  await seen([drift()]);
  await delayLater("changedAt");
  const row = () => service.database.finding.findFirstOrThrow({ where: { environmentId } });
  const before = await row();
  await seen([]);
  const { vanishedAt } = await row();
  await seen([]);
  expect((await row()).vanishedAt).toEqual(vanishedAt);
  await seen([drift()]);
  expect((await row()).changedAt.getTime()).toBeGreaterThan(before.changedAt.getTime());
});

test("a value to and fro within the delay makes one finding and no proposal", async () => {
  await seen([drift("a")]);
  for (const value of ["b", "a", "b", "a"]) {
    await seen([drift(value)]);
    expect(await service.runOut("auto-propose")).not.toContain(environmentId);
  }
  expect(await findings()).toHaveLength(1);
  expect(await detected()).toHaveLength(1);
  expect(await proposals()).toEqual([]);

  await delayLater("changedAt");
  expect(await service.runOut("auto-propose")).toContain(environmentId);
  expect(await proposals()).toHaveLength(1);
});

test("a value to and fro supersedes the proposal that showed it, and makes no other within the delay", async () => {
  await seen([drift("a")]);
  await tenant.proposeReconciliation({
    environmentId,
    direction: ReconciliationDirection.REVERT_TO_SPECIFICATION,
  });
  for (const value of ["b", "a", "b", "a"]) {
    await seen([drift(value)]);
    expect(await service.runOut("auto-propose")).not.toContain(environmentId);
  }
  expect(await proposals()).toMatchObject([{ state: ProposalState.SUPERSEDED }]);
});

test("what has stayed away for the delay is resolved by the next look", async () => {
  await seen([drift()]);
  await seen([]);
  await delayLater("vanishedAt");
  await seen([]);
  const [finding] = await findings();
  expect(finding?.state).toBe(FindingState.RESOLVED);
  expect(finding?.vanishedAt).toBeUndefined();
});

test("what has stayed away for the delay is resolved when nobody looks, too, and its proposal is OBSOLETE", async () => {
  await seen([drift()]);
  await tenant.proposeReconciliation({
    environmentId,
    direction: ReconciliationDirection.REVERT_TO_SPECIFICATION,
  });
  await seen([]);
  expect(await service.runOut("vanished-drift")).not.toContain(environmentId);
  expect(await proposals()).toMatchObject([{ state: ProposalState.PROPOSED }]);
  await delayLater("vanishedAt");
  expect(await service.runOut("vanished-drift")).toContain(environmentId);
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
  expect(await proposals()).toMatchObject([{ state: ProposalState.OBSOLETE }]);
  expect(await service.runOut("vanished-drift")).not.toContain(environmentId);
});

test("what a run has put right is resolved at once", async () => {
  await seen([drift()]);
  const direction = ReconciliationDirection.REVERT_TO_SPECIFICATION;
  const { proposal } = await tenant.proposeReconciliation({ environmentId, direction });
  service.provisioning.firstState = RunState.APPLIED;
  await tenant.decideReconciliation({
    proposalId: proposal?.proposalId ?? "",
    digest: proposal?.digest ?? "",
    decision: Decision.ACCEPT,
  });
  await seen([]);
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
});

test("what another version no longer has is resolved at once", async () => {
  await seen([drift()]);
  await seen([], { specificationId: uuidv7(), version: 2 });
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
});

test("without a delay, what isn't seen is resolved at once, and what had vanished by the next sweep", async () => {
  await seen([drift()]);
  await seen([]);
  await configured({});
  expect(await service.runOut("vanished-drift")).toContain(environmentId);
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
  await seen([drift()]);
  await seen([]);
  expect((await findings()).map(({ state }) => state)).toEqual([FindingState.RESOLVED, FindingState.RESOLVED]);
});

test("a suppressed drift that flaps stays suppressed, and its end opens nothing that is away", async () => {
  await seen([drift()]);
  const findingId = (await findings())[0]?.findingId ?? "";
  const until = { seconds: BigInt(Math.floor(Date.now() / 1_000) + 3_600) };
  await tenant.suppressDrift({ findingId, reason: "restarts", until });
  await seen([]);
  await seen([drift()]);
  expect(await findings()).toMatchObject([{ findingId, state: FindingState.SUPPRESSED }]);

  await seen([]);
  const suppressedUntil = new Date(Date.now() - 1_000);
  await service.database.finding.update({ where: { id: findingId }, data: { suppressedUntil } });
  await service.runOut("suppression-end");
  expect(await findings()).toMatchObject([{ findingId, state: FindingState.RESOLVED }]);
  expect(await detected()).toHaveLength(1);
});
