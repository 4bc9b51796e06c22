import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { DecideReconciliationRequest_Decision as Decision } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { FindingState, ProposalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { ProvisioningKind, RunMode, RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { until } from "@runtime-cloud/local-servers/until";
import { drift, past, type Reconciling, reconciling, REFRESH } from "../../_support/reconciling.ts";
import { type EnvironmentService, refusalOf, startEnvironments } from "../../_support/runtime-environment.ts";

let service: EnvironmentService;
let here: Reconciling;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  here = await reconciling(service);
  await here.seen([drift("input.a")]);
});

test("an accepted proposal plans one run of the applied specification and is ACCEPTED with it", async () => {
  const { tenantId, specificationId, proposed, decide, decidedEvents } = here;
  const proposal = await proposed();
  const decided = await decide(proposal, Decision.ACCEPT, "as reviewed");
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
  await here.decide(await here.proposed(REFRESH));
  expect(service.provisioning.planned).toMatchObject([{ mode: RunMode.REFRESH_ONLY }]);
});

test("a proposal that is accepted while provisioning is down stays ACCEPTING and is planned once it is up", async () => {
  const { proposed, decide, decidedEvents, followedUp, proposalNow } = here;
  const proposal = await proposed();
  await service.provisioning.down();
  expect((await decide(proposal))?.state).toBe(ProposalState.ACCEPTING);
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
  const { tenant, tenantId } = here;
  const { proposalId, digest } = await here.proposed();
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
  expect(service.provisioning.headers.get(tenantId)).toEqual({ correlationId: "decision-7", traceparent });
  const transition = { aggregateId: proposalId, event: "planRun" };
  expect(await service.database.transition.findMany({ where: transition })).toMatchObject([
    { actor: "deadline:acceptance", correlationId: "decision-7", traceparent },
  ]);
});

test("a plan that is refused for good fails the proposal with the reason and opens its findings", async () => {
  const proposal = await here.proposed();
  service.provisioning.refusal = new ConnectError("the specification is SUPERSEDED", Code.FailedPrecondition);
  expect(await here.decide(proposal)).toMatchObject({
    state: ProposalState.FAILED,
    reason: "the specification is SUPERSEDED",
  });
  expect(await here.findings()).toMatchObject([{ state: FindingState.OPEN }]);
});

test("a run that was over before it was known here completes the proposal", async () => {
  service.provisioning.firstState = RunState.APPLIED;
  expect((await here.decide(await here.proposed()))?.state).toBe(ProposalState.COMPLETED);
  expect(service.enqueued).toContain(here.environmentId);
  await here.seen([]);
  expect(await here.findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
});

test.each([
  [RunState.FAILED, "ENGINE_ERROR: no space left", /^ENGINE_ERROR: no space left$/],
  [RunState.CANCELLED, undefined, /^run \S+ is CANCELLED$/],
  [RunState.SUPERSEDED, "SUPERSEDED: by version 2", /^SUPERSEDED: by version 2$/],
  [RunState.EXPIRED, "EXPIRED: the plan was not decided", /^EXPIRED/],
  [RunState.PARTIALLY_APPLIED, "ENGINE_ERROR: half", /^ENGINE_ERROR: half$/],
  [RunState.INDETERMINATE, "EXECUTOR_LOST: gone", /^EXECUTOR_LOST: gone; .* end it by ResolveIndeterminate$/],
])("a run that ends %s fails its proposal with the reason and opens its findings", async (state, reason, said) => {
  const { proposed, decide, followedUp, proposalNow, findings } = here;
  const proposal = await proposed();
  const accepted = await decide(proposal);
  await followedUp(proposal);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.ACCEPTED);
  service.provisioning.runs.set(accepted?.provisioningRunId ?? "", { state, ...(reason !== undefined && { reason }) });
  await followedUp(proposal);
  const failed = await proposalNow(proposal);
  expect(failed?.state).toBe(ProposalState.FAILED);
  expect(failed?.reason).toMatch(said);
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
});

test("drift that is still there after its run was applied is open again", async () => {
  service.provisioning.firstState = RunState.APPLIED;
  await here.decide(await here.proposed());
  await here.seen([drift("input.a")]);
  expect(await here.findings()).toMatchObject([{ state: FindingState.OPEN }]);
});

test("a rejected proposal is announced, plans nothing and opens its findings", async () => {
  const proposal = await here.proposed();
  const rejected = await here.decide(proposal, Decision.REJECT, "wanted");
  expect(rejected).toMatchObject({ state: ProposalState.REJECTED, reason: "wanted", findingIds: proposal.findingIds });
  expect(service.provisioning.planned).toEqual([]);
  expect(await here.findings()).toMatchObject([{ state: FindingState.OPEN }]);
  expect(await here.decidedEvents()).toMatchObject([{ data: { state: "PROPOSAL_STATE_REJECTED" } }]);
});

test("a decision on another digest is refused by field and changes nothing", async () => {
  const proposal = await here.proposed();
  const { code, rawMessage } = await refusalOf(here.decide({ ...proposal, digest: `sha256:${"0".repeat(64)}` }));
  expect(code).toBe(Code.InvalidArgument);
  expect(rawMessage).toContain(`digest: is not the digest of proposal ${proposal.proposalId}`);
  expect((await here.proposalNow(proposal))?.state).toBe(ProposalState.PROPOSED);
});

test("a proposal is decided once, and the same key returns its decision again", async () => {
  const { tenant, proposed } = here;
  const { proposalId, digest } = await proposed();
  const request = { proposalId, digest, decision: Decision.ACCEPT, idempotencyKey: "decide-1" };
  const first = await tenant.decideReconciliation(request);
  expect(await tenant.decideReconciliation(request)).toEqual(first);
  const { code, rawMessage } = await refusalOf(
    tenant.decideReconciliation({ proposalId, digest, decision: Decision.REJECT }),
  );
  expect(code).toBe(Code.FailedPrecondition);
  expect(rawMessage).toContain(`ReconciliationProposal ${proposalId} is ACCEPTED: reject refused`);
  const other = { ...request, decision: Decision.REJECT };
  expect((await refusalOf(tenant.decideReconciliation(other))).rawMessage).toContain("idempotencyKey: was used for");
  expect(service.provisioning.planned).toHaveLength(1);
});

test("of two decisions at the same moment one stands", async () => {
  const { proposed, decide, decidedEvents } = here;
  const proposal = await proposed();
  const outcomes = await Promise.allSettled([decide(proposal), decide(proposal, Decision.REJECT)]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(await decidedEvents()).toHaveLength(1);
});
