import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import type {
  CreateSuppressionRuleRequestSchema,
  SuppressionRule,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import {
  DriftKind,
  FindingState,
  ProposalState,
  ReconciliationDirection,
  SyncStatus,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied, type Applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

const DAY_MS = 86_400_000;

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
});

type Request = MessageInitShape<typeof CreateSuppressionRuleRequestSchema>;
type Drift = NonNullable<Applied["drift"]>;

const text = (value: string) => create(ValueSchema, { kind: { case: "stringValue", value } });
const drift = (attribute: string, address = "aws_vm.app") => ({
  address,
  kind: DriftKind.ATTRIBUTE_CHANGED,
  attribute,
  applied: text("declared"),
  observed: text("edited"),
});
const seen = (facts: Drift) => {
  service.provisioning.applied.set(environmentId, [applied({ specificationId, drift: facts })]);
  return tenant.observeEnvironment({ environmentId });
};
const inMs = (ms: number) => timestampFromDate(new Date(Date.now() + ms));
const request = (changes: Partial<Omit<Request, "$typeName">> = {}) => ({
  environmentId,
  resourcePattern: "aws_vm.*",
  attributePattern: "tags.*",
  reason: "the tagging service writes them",
  until: inMs(DAY_MS),
  ...changes,
});
const silence = async (changes: Partial<Omit<Request, "$typeName">> = {}): Promise<SuppressionRule> => {
  const { rule } = await tenant.createSuppressionRule(request(changes));
  if (!rule) throw new Error("no rule");
  return rule;
};
const findings = async () => (await tenant.listFindings({ environmentId })).findings;
const states = async () =>
  Object.fromEntries((await findings()).map(({ attribute, state }) => [attribute, FindingState[state]]));
const detected = async () =>
  (await service.announced(tenantId)).filter(({ event }) => event === "RuntimeDriftDetected");
const rules = async (ended = false) => (await tenant.listSuppressionRules({ environmentId, ended })).rules;
const timeIsOver = async ({ ruleId: id }: SuppressionRule) => {
  await service.database.suppressionRule.update({ where: { id }, data: { until: new Date(Date.now() - 1_000) } });
};

test("a rule silences the open findings that it matches, and no other", async () => {
  await seen([drift("tags.owner"), drift("size"), drift("tags.owner", "aws_disk.app")]);
  const rule = await silence();
  expect(rule).toMatchObject({ environmentId, suppressed: 1, createdBy: `operator of ${tenantId}` });
  const silenced = (await findings()).filter(({ state }) => state === FindingState.SUPPRESSED);
  expect(silenced).toMatchObject([
    {
      resource: "aws_vm.app",
      attribute: "tags.owner",
      suppressionRuleId: rule.ruleId,
      suppressedReason: "the tagging service writes them",
      suppressedUntil: rule.until,
    },
  ]);
  expect((await seen([drift("tags.owner")])).environment?.sync).toBe(SyncStatus.IN_SYNC);
});

test("what a rule silences later is born suppressed and told to nobody, until the rule ends", async () => {
  const rule = await silence();
  expect((await seen([drift("tags.owner"), drift("size")])).environment?.sync).toBe(SyncStatus.DRIFTED);
  expect(await states()).toEqual({ "tags.owner": "SUPPRESSED", size: "OPEN" });
  expect(await detected()).toMatchObject([{ data: { findingId: await idOf("size") } }]);
  expect(await rules()).toMatchObject([{ ruleId: rule.ruleId, suppressed: 1 }]);
  const birth = { aggregate: "DriftFinding", aggregateId: await idOf("tags.owner") };
  expect(await service.database.transition.findMany({ where: birth })).toMatchObject([
    { version: 0, fromState: "[*]", event: "suppress", toState: "SUPPRESSED" },
  ]);

  const { rule: ended } = await tenant.endSuppressionRule({ ruleId: rule.ruleId });
  expect(ended).toMatchObject({ ruleId: rule.ruleId, suppressed: 0, endedAt: expect.anything() });
  expect(await states()).toEqual({ "tags.owner": "OPEN", size: "OPEN" });
  expect((await findings()).map(({ suppressionRuleId }) => suppressionRuleId)).toEqual([undefined, undefined]);
  expect((await detected()).map(({ data }) => data["findingId"])).toContain(await idOf("tags.owner"));
  expect(await rules()).toEqual([]);
  expect(await rules(true)).toMatchObject([{ ruleId: rule.ruleId }]);
});

const idOf = async (attribute: string) =>
  (await findings()).find((finding) => finding.attribute === attribute)?.findingId ?? "";

test("a rule's time runs out: its findings are open and told, and it silences nothing more", async () => {
  const rule = await silence();
  await seen([drift("tags.owner")]);
  expect(await service.runOut("suppression-rule-end")).not.toContain(rule.ruleId);
  await timeIsOver(rule);
  expect(await service.runOut("suppression-rule-end")).toContain(rule.ruleId);
  expect(await states()).toEqual({ "tags.owner": "OPEN" });
  expect(await detected()).toHaveLength(1);
  await seen([drift("tags.owner"), drift("tags.team")]);
  expect(await states()).toEqual({ "tags.owner": "OPEN", "tags.team": "OPEN" });
  expect(await service.runOut("suppression-rule-end")).not.toContain(rule.ruleId);
});

test("what two rules silence stays silenced while one of them holds", async () => {
  const longer = await silence({ until: inMs(2 * DAY_MS) });
  const shorter = await silence({ kinds: [DriftKind.ATTRIBUTE_CHANGED], reason: "migration" });
  await seen([drift("tags.owner")]);
  expect(await findings()).toMatchObject([{ suppressionRuleId: longer.ruleId }]);
  await tenant.endSuppressionRule({ ruleId: longer.ruleId });
  expect(await findings()).toMatchObject([
    { state: FindingState.SUPPRESSED, suppressionRuleId: shorter.ruleId, suppressedReason: "migration" },
  ]);
  await tenant.endSuppressionRule({ ruleId: shorter.ruleId });
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
  expect(await detected()).toHaveLength(1);
});

test("what a proposal covers is left to whoever decides it, and silenced once it is open again", async () => {
  await seen([drift("tags.owner")]);
  const direction = ReconciliationDirection.REVERT_TO_SPECIFICATION;
  const { proposal } = await tenant.proposeReconciliation({ environmentId, direction });
  expect(await silence()).toMatchObject({ suppressed: 0 });
  expect(await states()).toEqual({ "tags.owner": "PROPOSED" });
  await seen([drift("tags.owner"), drift("size")]);
  expect((await tenant.getProposal({ proposalId: proposal?.proposalId ?? "" })).proposal?.state).toBe(
    ProposalState.SUPERSEDED,
  );
  await seen([drift("tags.owner"), drift("size")]);
  expect(await states()).toEqual({ "tags.owner": "SUPPRESSED", size: "OPEN" });
});

test("drift that is born suppressed supersedes no proposal", async () => {
  await seen([drift("size")]);
  await silence();
  await tenant.proposeReconciliation({
    environmentId,
    direction: ReconciliationDirection.REVERT_TO_SPECIFICATION,
  });
  await seen([drift("size"), drift("tags.owner")]);
  expect((await tenant.listProposals({ environmentId })).proposals).toMatchObject([{ state: ProposalState.PROPOSED }]);
});

test("a finding that a rule silences can't be opened by hand: the refusal says which rule to end", async () => {
  const rule = await silence();
  await seen([drift("tags.owner")]);
  const findingId = await idOf("tags.owner");
  const { code, rawMessage } = await refusalOf(tenant.unsuppressDrift({ findingId }));
  expect(code).toBe(Code.FailedPrecondition);
  expect(rawMessage).toContain(`DriftFinding ${findingId} is SUPPRESSED: unsuppress refused`);
  expect(rawMessage).toContain(`suppression rule ${rule.ruleId} silences it: end that by EndSuppressionRule`);
});

test("a suppression by hand outlives the rule that it replaces", async () => {
  const rule = await silence();
  await seen([drift("tags.owner")]);
  const findingId = await idOf("tags.owner");
  await tenant.suppressDrift({ findingId, reason: "agreed", until: inMs(DAY_MS) });
  await tenant.endSuppressionRule({ ruleId: rule.ruleId });
  expect(await findings()).toMatchObject([{ state: FindingState.SUPPRESSED, suppressedReason: "agreed" }]);
  expect((await tenant.unsuppressDrift({ findingId })).finding?.state).toBe(FindingState.OPEN);
});

test("a rule that silences a thousand findings ends in parts, none of them lost", async () => {
  const rule = await silence({ attributePattern: "" });
  await seen(Array.from({ length: 1_000 }, (_, index) => drift("size", `aws_vm.app[${index}]`)));
  expect(await detected()).toEqual([]);
  const { rule: ending } = await tenant.endSuppressionRule({ ruleId: rule.ruleId });
  expect(ending?.endedAt).toBeUndefined();
  await service.runOut("suppression-rule-end");
  expect(await rules(true)).toMatchObject([{ suppressed: 0, endedAt: expect.anything() }]);
  expect(await detected()).toHaveLength(1_000);
});
