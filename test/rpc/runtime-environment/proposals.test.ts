import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  DecideReconciliationRequest_Decision as Decision,
  type Proposal,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import {
  DriftKind,
  FindingState,
  ProposalState,
  ReconciliationDirection,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import {
  ProvisioningKind,
  RunMode,
  RunState,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied, type Applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

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
  const { provisioning } = service;
  provisioning.planned.length = 0;
  provisioning.refusal = undefined;
  provisioning.firstState = RunState.QUEUED;
  provisioning.whilePlanning = () => Promise.resolve();
});

const REVERT = ReconciliationDirection.REVERT_TO_SPECIFICATION;
const text = (value: string) => create(ValueSchema, { kind: { case: "stringValue", value } });
const drift = (attribute: string, observed = "edited") => ({
  address: "terraform_data.app",
  kind: DriftKind.ATTRIBUTE_CHANGED,
  attribute,
  applied: text("declared"),
  observed: text(observed),
});
const seen = (facts: NonNullable<Applied["drift"]>) => {
  service.provisioning.applied.set(environmentId, [applied({ specificationId, drift: facts })]);
  return tenant.observeEnvironment({ environmentId });
};
const proposed = async (direction = REVERT): Promise<Proposal> => {
  const { proposal } = await tenant.proposeReconciliation({ environmentId, direction });
  if (!proposal) throw new Error("no proposal");
  return proposal;
};
const decide = ({ proposalId, digest }: Proposal, decision = Decision.ACCEPT, reason = "") =>
  tenant.decideReconciliation({ proposalId, digest, decision, reason });
const proposalNow = async ({ proposalId }: Proposal) => (await tenant.getProposal({ proposalId })).proposal;
const findings = async () => (await tenant.listFindings({ environmentId })).findings;
const events = async () => (await service.announced(tenantId)).map(({ event }) => event);
const decidedEvents = async () =>
  (await service.announced(tenantId)).filter(({ event }) => event === "ReconciliationDecided");
const past = () => new Date(Date.now() - 1_000);
const followedUp = async ({ proposalId: id }: Proposal) => {
  await service.database.proposal.update({ where: { id }, data: { askAt: past() } });
  return service.runOut("acceptance");
};

test("open findings of a specification become one proposal with a digest, an end and an announcement", async () => {
  await seen([drift("input.a"), drift("input.b")]);
  const proposal = await proposed();
  expect(proposal).toMatchObject({
    environmentId,
    state: ProposalState.PROPOSED,
    direction: REVERT,
    destructive: false,
  });
  expect(proposal.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
  const covered = await findings();
  expect(covered.map(({ state, proposalId }) => [state, proposalId])).toEqual([
    [FindingState.PROPOSED, proposal.proposalId],
    [FindingState.PROPOSED, proposal.proposalId],
  ]);
  expect([...proposal.findingIds].sort()).toEqual(covered.map(({ findingId }) => findingId).sort());
  expect(Number(proposal.expiresAt?.seconds) - Number(proposal.proposedAt?.seconds)).toBe(86_400);
  expect(await events()).toContain("ReconciliationProposed");
  expect((await tenant.listProposals({ environmentId })).proposals).toEqual([proposal]);
});

test("reverting what nobody declared is shown as destructive", async () => {
  await seen([{ address: "terraform_data.extra", kind: DriftKind.RESOURCE_UNMANAGED }]);
  expect(await proposed()).toMatchObject({ destructive: true });
});

test("an accepted proposal plans one run of the applied specification and is ACCEPTED with it", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  const decided = (await decide(proposal, Decision.ACCEPT, "as reviewed")).proposal;
  expect(decided).toMatchObject({
    state: ProposalState.ACCEPTED,
    decidedBy: `operator of ${tenantId}`,
    reason: "as reviewed",
  });
  expect(service.provisioning.planned).toMatchObject([
    {
      specificationId,
      kind: ProvisioningKind.RECONCILIATION,
      mode: RunMode.APPLY,
      proposalId: proposal.proposalId,
      idempotencyKey: proposal.proposalId,
    },
  ]);
  expect(await decidedEvents()).toMatchObject([
    { data: { state: "PROPOSAL_STATE_ACCEPTED", provisioningRunId: decided?.provisioningRunId } },
  ]);
});

test("refreshing the state plans a refresh-only run", async () => {
  await seen([drift("input.a")]);
  await decide(await proposed(ReconciliationDirection.REFRESH_STATE));
  expect(service.provisioning.planned).toMatchObject([{ mode: RunMode.REFRESH_ONLY }]);
});

test("a proposal that is accepted while provisioning is down stays ACCEPTING and is planned once it is up", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  await service.provisioning.down();
  expect((await decide(proposal)).proposal?.state).toBe(ProposalState.ACCEPTING);
  expect(await decidedEvents()).toEqual([]);
  expect(await followedUp(proposal)).toContain(proposal.proposalId);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.ACCEPTING);

  await service.provisioning.up();
  await until("the proposal to be ACCEPTED", 20_000, async () => {
    await followedUp(proposal);
    return (await proposalNow(proposal))?.state === ProposalState.ACCEPTED || undefined;
  });
  expect(service.provisioning.planned).toHaveLength(1);
  expect(await decidedEvents()).toHaveLength(1);
});

test("a run that is planned late is part of what the decision set off", async () => {
  await seen([drift("input.a")]);
  const { proposalId, digest } = await proposed();
  await service.provisioning.down();
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const headers = { "x-correlation-id": "decision-7", traceparent };
  await tenant.decideReconciliation({ proposalId, digest, decision: Decision.ACCEPT }, { headers });
  await service.provisioning.up();
  await until("the proposal to be ACCEPTED", 20_000, async () => {
    await service.database.proposal.update({ where: { id: proposalId }, data: { askAt: past() } });
    await service.runOut("acceptance");
    const { proposal } = await tenant.getProposal({ proposalId });
    return proposal?.state === ProposalState.ACCEPTED || undefined;
  });
  expect(service.provisioning.headers).toEqual({ tenant: tenantId, correlationId: "decision-7", traceparent });
  const transition = { aggregateId: proposalId, event: "planRun" };
  expect(await service.database.transition.findMany({ where: transition })).toMatchObject([
    { actor: "deadline:acceptance", correlationId: "decision-7", traceparent },
  ]);
});

test("a plan that is refused for good fails the proposal with the reason and opens its findings", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  service.provisioning.refusal = new ConnectError("the specification is SUPERSEDED", Code.FailedPrecondition);
  expect((await decide(proposal)).proposal).toMatchObject({
    state: ProposalState.FAILED,
    reason: "the specification is SUPERSEDED",
  });
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
});

test("a run that was over before it was known here completes the proposal", async () => {
  await seen([drift("input.a")]);
  service.provisioning.firstState = RunState.APPLIED;
  expect((await decide(await proposed())).proposal?.state).toBe(ProposalState.COMPLETED);
  expect(service.enqueued).toContain(environmentId);
  await seen([]);
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
});

test("a cancelled run, which no event tells, fails the proposal when it is asked for", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  const { proposal: accepted } = await decide(proposal);
  await followedUp(proposal);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.ACCEPTED);
  service.provisioning.runs.set(accepted?.provisioningRunId ?? "", { state: RunState.CANCELLED });
  await followedUp(proposal);
  expect(await proposalNow(proposal)).toMatchObject({ state: ProposalState.FAILED });
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
});

test("drift that is still there after its run was applied is open again", async () => {
  await seen([drift("input.a")]);
  service.provisioning.firstState = RunState.APPLIED;
  await decide(await proposed());
  await seen([drift("input.a")]);
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
});

test("a rejected proposal is announced, plans nothing and opens its findings", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  const { proposal: rejected } = await decide(proposal, Decision.REJECT, "wanted");
  expect(rejected).toMatchObject({ state: ProposalState.REJECTED, reason: "wanted", findingIds: proposal.findingIds });
  expect(service.provisioning.planned).toEqual([]);
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
  expect(await decidedEvents()).toMatchObject([{ data: { state: "PROPOSAL_STATE_REJECTED" } }]);
});

test("a decision on another digest is refused by field and changes nothing", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  const { code, rawMessage } = await refusalOf(decide({ ...proposal, digest: `sha256:${"0".repeat(64)}` }));
  expect(code).toBe(Code.InvalidArgument);
  expect(rawMessage).toContain(`digest: is not the digest of proposal ${proposal.proposalId}`);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.PROPOSED);
});

test("a proposal is decided once, and the same key returns its decision again", async () => {
  await seen([drift("input.a")]);
  const { proposalId, digest } = await proposed();
  const request = { proposalId, digest, decision: Decision.ACCEPT, idempotencyKey: "decide-1" };
  const first = await tenant.decideReconciliation(request);
  expect(await tenant.decideReconciliation(request)).toEqual(first);
  const { code, rawMessage } = await refusalOf(
    tenant.decideReconciliation({ proposalId, digest, decision: Decision.REJECT }),
  );
  expect(code).toBe(Code.FailedPrecondition);
  expect(rawMessage).toContain(`ReconciliationProposal ${proposalId} is ACCEPTED: reject refused`);
  expect(service.provisioning.planned).toHaveLength(1);
});

test("of two decisions at the same moment one stands", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  const outcomes = await Promise.allSettled([decide(proposal), decide(proposal, Decision.REJECT)]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(await decidedEvents()).toHaveLength(1);
});

test("new drift supersedes an undecided proposal and opens its findings", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  await seen([drift("input.a"), drift("input.b")]);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.SUPERSEDED);
  expect((await findings()).map(({ state }) => state)).toEqual([FindingState.OPEN, FindingState.OPEN]);
  expect((await refusalOf(decide(proposal))).code).toBe(Code.FailedPrecondition);
});

test("drift that moves on supersedes the proposal that showed another value", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  await seen([drift("input.a", "edited again")]);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.SUPERSEDED);
});

test("drift that vanishes makes an undecided proposal OBSOLETE", async () => {
  await seen([drift("input.a"), drift("input.b")]);
  const proposal = await proposed();
  await seen([drift("input.b")]);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.PROPOSED);
  await seen([]);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.OBSOLETE);
});

test("a newer proposal supersedes the undecided one and takes its findings", async () => {
  await seen([drift("input.a"), drift("input.b")]);
  const older = await proposed();
  const newer = await proposed(ReconciliationDirection.REFRESH_STATE);
  expect((await proposalNow(older))?.state).toBe(ProposalState.SUPERSEDED);
  expect((await findings()).map(({ proposalId }) => proposalId)).toEqual([newer.proposalId, newer.proposalId]);

  const [findingId = ""] = newer.findingIds;
  const request = { environmentId, direction: REVERT, findingIds: [findingId] };
  const { proposal: newest } = await tenant.proposeReconciliation(request);
  expect(newest?.findingIds).toEqual([findingId]);
  expect((await findings()).map(({ state }) => state).sort()).toEqual([FindingState.OPEN, FindingState.PROPOSED]);
});

test("findings of several specifications need their ids named, and the refusal names them", async () => {
  const release = applied({ kind: SpecificationKind.RELEASE, drift: [drift("input.a")] });
  service.provisioning.applied.set(environmentId, [applied({ specificationId, drift: [drift("input.a")] }), release]);
  await tenant.observeEnvironment({ environmentId });
  const { code, rawMessage } = await refusalOf(proposed());
  expect(code).toBe(Code.InvalidArgument);
  const all = await findings();
  for (const { findingId } of all) expect(rawMessage).toContain(findingId);
  expect(rawMessage).toContain(`RELEASE ${release.specificationId}`);

  const findingIds = all.slice(0, 1).map(({ findingId }) => findingId);
  const { proposal } = await tenant.proposeReconciliation({ environmentId, direction: REVERT, findingIds });
  expect(proposal?.findingIds).toEqual(findingIds);
});

test("what can't be proposed is refused by field", async () => {
  const nothing = await refusalOf(proposed());
  expect(nothing.rawMessage).toMatch(/^environmentId: has no open finding/);
  await seen([drift("input.a")]);
  const adopt = await refusalOf(proposed(ReconciliationDirection.ADOPT_OBSERVED));
  expect(adopt.rawMessage).toContain("use REVERT_TO_SPECIFICATION or REFRESH_STATE");
  const request = { environmentId, direction: REVERT, findingIds: [uuidv7()] };
  const unknown = await refusalOf(tenant.proposeReconciliation(request));
  expect(unknown.rawMessage).toMatch(/^findingIds\[0\]: is no finding of environment/);
  expect([nothing.code, adopt.code, unknown.code]).toEqual(Array(3).fill(Code.InvalidArgument));
});

test("a proposal that nobody decides in time is EXPIRED and opens its findings", async () => {
  await seen([drift("input.a")]);
  const proposal = await proposed();
  expect(await service.runOut("proposal-expiry")).not.toContain(proposal.proposalId);
  await service.database.proposal.update({ where: { id: proposal.proposalId }, data: { expiresAt: past() } });
  expect((await refusalOf(decide(proposal))).code).toBe(Code.FailedPrecondition);
  expect(await service.runOut("proposal-expiry")).toContain(proposal.proposalId);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.EXPIRED);
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
});

test("a configured environment proposes by itself, once, and not again what was rejected until it moves", async () => {
  await seen([drift("input.a")]);
  expect(await service.runOut("auto-propose")).not.toContain(environmentId);
  const configuration = {
    observeEvery: { seconds: 60n },
    staleAfter: { seconds: 300n },
    proposeAfter: { seconds: 0n },
  };
  await tenant.configureEnvironment({ environmentId, ...configuration });

  const runs = await Promise.all([service.runOut("auto-propose"), service.runOut("auto-propose")]);
  expect(runs.flat().filter((id) => id === environmentId)).toHaveLength(1);
  const [proposal] = (await tenant.listProposals({ environmentId, state: ProposalState.PROPOSED })).proposals;
  if (!proposal) throw new Error("nothing was proposed");
  await decide(proposal, Decision.REJECT);
  expect(await service.runOut("auto-propose")).not.toContain(environmentId);
  await seen([drift("input.a", "edited again")]);
  expect(await service.runOut("auto-propose")).toContain(environmentId);
});
