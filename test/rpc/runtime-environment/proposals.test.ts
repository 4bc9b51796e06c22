import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { DecideReconciliationRequest_Decision as Decision } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import {
  DriftKind,
  FindingState,
  Health,
  ProposalState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied } from "../../_support/provisioning-server.ts";
import { drift, past, type Reconciling, reconciling, REFRESH, REVERT } from "../../_support/reconciling.ts";
import { type EnvironmentService, refusalOf, startEnvironments } from "../../_support/runtime-environment.ts";

let service: EnvironmentService;
let here: Reconciling;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  here = await reconciling(service);
});

test("open findings of a specification become one proposal with a digest, an end and an announcement", async () => {
  const { environmentId, tenant, tenantId, seen, proposed, findings } = here;
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
  expect((await service.announced(tenantId)).map(({ event }) => event)).toContain("ReconciliationProposed");
  expect((await tenant.listProposals({ environmentId })).proposals).toEqual([proposal]);
});

test("reverting what nobody declared is shown as destructive until its plan is there", async () => {
  await here.seen([{ address: "terraform_data.extra", kind: DriftKind.RESOURCE_UNMANAGED }]);
  expect(await here.proposed()).toMatchObject({ destructive: true });
});

test("new drift supersedes an undecided proposal and opens its findings", async () => {
  const { seen, proposed, proposalNow, findings, decide } = here;
  await seen([drift("input.a")]);
  const proposal = await proposed();
  await seen([drift("input.a"), drift("input.b")]);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.SUPERSEDED);
  expect((await findings()).map(({ state }) => state)).toEqual([FindingState.OPEN, FindingState.OPEN]);
  expect((await refusalOf(decide(proposal))).code).toBe(Code.FailedPrecondition);
});

test("drift that moves on supersedes the proposal that showed another value", async () => {
  const { seen, proposed, proposalNow } = here;
  await seen([drift("input.a")]);
  const proposal = await proposed();
  await seen([drift("input.a", "edited again")]);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.SUPERSEDED);
});

test("drift that vanishes makes an undecided proposal OBSOLETE", async () => {
  const { seen, proposed, proposalNow } = here;
  await seen([drift("input.a"), drift("input.b")]);
  const proposal = await proposed();
  await seen([drift("input.b")]);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.PROPOSED);
  await seen([]);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.OBSOLETE);
});

test("a newer proposal supersedes the undecided one, which names it, and takes its findings", async () => {
  const { tenant, environmentId, seen, proposed, proposalNow, findings } = here;
  await seen([drift("input.a"), drift("input.b")]);
  const older = await proposed();
  const newer = await proposed(REFRESH);
  expect(await proposalNow(older)).toMatchObject({
    state: ProposalState.SUPERSEDED,
    supersededBy: newer.proposalId,
  });
  expect((await findings()).map(({ proposalId }) => proposalId)).toEqual([newer.proposalId, newer.proposalId]);

  const [findingId = ""] = newer.findingIds;
  const request = { environmentId, direction: REVERT, findingIds: [findingId] };
  const { proposal: newest } = await tenant.proposeReconciliation(request);
  expect(newest?.findingIds).toEqual([findingId]);
  expect((await findings()).map(({ state }) => state).sort()).toEqual([FindingState.OPEN, FindingState.PROPOSED]);
});

test("findings of several specifications need their ids named, and the refusal names them", async () => {
  const { tenant, environmentId, specificationId, proposed, findings } = here;
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
  const { tenant, environmentId, proposed, seen } = here;
  const nothing = await refusalOf(proposed());
  expect(nothing.rawMessage).toMatch(/^environmentId: has no open finding/);
  await seen([drift("input.a")]);
  const request = { environmentId, direction: REVERT, findingIds: [uuidv7(), "no-uuid"] };
  const unknown = await refusalOf(tenant.proposeReconciliation(request));
  expect(unknown.rawMessage).toMatch(/^findingIds\[0\]: is no finding of environment/);
  expect(unknown.rawMessage).toContain("findingIds[1]: is no finding of environment");
  expect([nothing.code, unknown.code]).toEqual([Code.InvalidArgument, Code.InvalidArgument]);
});

test("degraded health can't be proposed, by name or with everything else, and the refusal says why", async () => {
  const { tenant, environmentId, specificationId, proposed, findings } = here;
  const component = { name: "web", version: "1.0.0", replicas: 2 };
  const release = applied({ specificationId, kind: SpecificationKind.RELEASE, components: [component] });
  service.provisioning.applied.set(environmentId, [release]);
  await tenant.observeEnvironment({ environmentId });
  const seen = { name: "web", version: "1.0.0", replicasDesired: 2, replicasReady: 2, health: Health.DEGRADED };
  const observedAt = { seconds: BigInt(Math.floor(past().getTime() / 1_000)), nanos: 0 };
  await tenant.observeEnvironment({ environmentId, observation: { observedAt, components: [seen] } });
  const [finding] = await findings();
  expect(finding?.kind).toBe(DriftKind.HEALTH_DEGRADED);

  expect((await refusalOf(proposed())).rawMessage).toMatch(/^environmentId: has no open finding/);
  const request = { environmentId, direction: REVERT, findingIds: [finding?.findingId ?? ""] };
  const named = await refusalOf(tenant.proposeReconciliation(request));
  expect(named.rawMessage).toMatch(/^findingIds\[0\]: is HEALTH_DEGRADED, which no run puts right/);
});

test("a proposal that nobody decides in time is EXPIRED and opens its findings", async () => {
  const { seen, proposed, decide, proposalNow, findings } = here;
  await seen([drift("input.a")]);
  const proposal = await proposed();
  expect(await service.runOut("proposal-expiry")).not.toContain(proposal.proposalId);
  await service.database.proposal.update({ where: { id: proposal.proposalId }, data: { expiresAt: past() } });
  expect((await refusalOf(decide(proposal))).code).toBe(Code.FailedPrecondition);
  expect(await service.runOut("proposal-expiry")).toContain(proposal.proposalId);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.EXPIRED);
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
});

test("a thousand resources that drift at once are one proposal, and one decision closes or opens them all", async () => {
  const { seen, proposed, decide, tenant, environmentId } = here;
  const resources = Array.from({ length: 1_000 }, (_, index) => drift("input", "edited", `terraform_data.r${index}`));
  await seen(resources);
  const proposal = await proposed();
  expect(proposal.findingIds).toHaveLength(1_000);
  expect((await tenant.listProposals({ environmentId })).proposals).toHaveLength(1);
  const states = () => service.database.finding.groupBy({ by: ["state"], where: { environmentId }, _count: true });
  expect(await states()).toMatchObject([{ state: "PROPOSED", _count: 1_000 }]);
  await decide(proposal, Decision.REJECT);
  expect(await states()).toMatchObject([{ state: "OPEN", _count: 1_000 }]);
});

test("a value that can't be shown as it is makes a proposal all the same", async () => {
  const masked = create(ValueSchema, { kind: { case: "stringValue", value: "(sensitive value)" } });
  await here.seen([{ ...drift("input.password"), observed: masked, applied: masked }]);
  expect((await here.proposed()).findingIds).toHaveLength(1);
});
