import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  DecideReconciliationRequest_Decision as Decision,
  type Proposal,
  ProposalPreview_State as PreviewState,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { DriftKind, ProposalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { ProvisioningKind, RunMode, RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { until } from "@runtime-cloud/local-servers/until";
import { drift, type Reconciling, reconciling, REFRESH } from "../../_support/reconciling.ts";
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

const planDigest = `sha256:${"e".repeat(64)}`;
const change = { address: "terraform_data.app", resourceType: "terraform_data", actions: ["update"] };
const shown = { before: { a: "edited" }, after: { a: "declared", password: "(sensitive value)" } };

/** Lets the run that only plans end with this plan. */
async function planEnds(proposal: Proposal, summary = { changes: 1 }, changes = [{ ...change, ...shown }]) {
  const pending = await here.previewed(proposal);
  const runId = pending?.preview?.provisioningRunId ?? "";
  service.provisioning.plans.set(runId, { planDigest, summary, changes });
  service.provisioning.runs.set(runId, { state: RunState.PLANNED });
  return here.previewed(proposal);
}

test("a proposal to revert is planned without applying, and shows the plan once it is there", async () => {
  const proposal = await here.proposed();
  expect(proposal.preview).toMatchObject({ state: PreviewState.PENDING, changes: [] });
  const pending = await here.previewed(proposal);
  expect(service.provisioning.planned).toMatchObject([
    {
      specificationId: here.specificationId,
      kind: ProvisioningKind.RECONCILIATION,
      mode: RunMode.PLAN_ONLY,
      idempotencyKey: `preview-${proposal.proposalId}`,
    },
  ]);
  expect(service.provisioning.planned[0]?.proposalId).toBeUndefined();
  expect(pending?.preview?.state).toBe(PreviewState.PENDING);

  const ready = await planEnds(proposal, { changes: 1 });
  expect(ready?.preview).toMatchObject({
    state: PreviewState.READY,
    provisioningRunId: pending?.preview?.provisioningRunId,
    planDigest,
    summary: { changes: 1, destructive: false },
    changes: [{ address: "terraform_data.app", actions: ["update"], ...shown }],
  });
  expect(service.provisioning.planned).toHaveLength(1);
  const [listed] = (await here.tenant.listProposals({ environmentId: here.environmentId })).proposals;
  expect(listed?.preview).toMatchObject({ state: PreviewState.READY, summary: { changes: 1 }, changes: [] });
});

test("the plan says whether it is destructive, whatever was estimated", async () => {
  await here.seen([{ address: "terraform_data.extra", kind: DriftKind.RESOURCE_UNMANAGED }]);
  const proposal = await here.proposed();
  expect(proposal.destructive).toBe(true);
  const harmless = await planEnds(proposal, { changes: 1 });
  expect(harmless?.destructive).toBe(false);

  await here.seen([drift("input.b")]);
  const another = await here.proposed();
  expect(another.destructive).toBe(false);
  const summary = { changes: 0, replaces: 1, destructive: true };
  expect((await planEnds(another, summary))?.destructive).toBe(true);
});

test("the digest moves with the preview, and a decision on the one before says so", async () => {
  const proposal = await here.proposed();
  const ready = await planEnds(proposal);
  expect(ready?.digest).not.toBe(proposal.digest);
  const { code, rawMessage } = await refusalOf(here.decide(proposal));
  expect(code).toBe(Code.InvalidArgument);
  expect(rawMessage).toContain(`digest: moved when the preview of proposal ${proposal.proposalId} was there`);
  const decided = ready && (await here.decide(ready));
  expect(decided?.state).toBe(ProposalState.ACCEPTED);
});

test("what is decided before its preview is there is decided on the findings, and needs no preview any more", async () => {
  const proposal = await here.proposed();
  expect((await here.decide(proposal))?.state).toBe(ProposalState.ACCEPTED);
  await here.previewed(proposal);
  expect(service.provisioning.planned).toMatchObject([{ mode: RunMode.APPLY }]);
});

test("a preview that can't be planned is FAILED with the reason, and the proposal stays decidable", async () => {
  service.provisioning.refusal = new ConnectError("the specification is SUPERSEDED", Code.FailedPrecondition);
  const proposal = await here.proposed();
  const failed = await here.previewed(proposal);
  expect(failed).toMatchObject({
    state: ProposalState.PROPOSED,
    digest: proposal.digest,
    preview: { state: PreviewState.FAILED, failure: "the specification is SUPERSEDED" },
  });
  expect((await here.decide(proposal, Decision.REJECT))?.state).toBe(ProposalState.REJECTED);
});

test("a preview whose run fails is FAILED with the run's reason", async () => {
  const proposal = await here.proposed();
  const pending = await here.previewed(proposal);
  const runId = pending?.preview?.provisioningRunId ?? "";
  service.provisioning.runs.set(runId, { state: RunState.FAILED, reason: "INVALID_PROGRAM: main.tf" });
  const failed = await here.previewed(proposal);
  expect(failed?.preview).toMatchObject({ state: PreviewState.FAILED, failure: "INVALID_PROGRAM: main.tf" });
});

test("a preview that is asked for while provisioning is down comes once it is up, and is planned once", async () => {
  const proposal = await here.proposed();
  await service.provisioning.down();
  expect((await here.previewed(proposal))?.preview?.state).toBe(PreviewState.PENDING);
  await service.provisioning.up();
  await until("the preview's run to be known", 20_000, async () => {
    const pending = await here.previewed(proposal);
    return pending?.preview?.provisioningRunId;
  });
  const ready = await planEnds(proposal);
  expect(ready?.preview?.state).toBe(PreviewState.READY);
  expect(service.provisioning.planned).toHaveLength(1);
});

test("a preview shows a hundred changes at most, and no more than fit", async () => {
  const many = Array.from({ length: 150 }, (_, index) => ({
    ...change,
    ...shown,
    address: `terraform_data.r${index}`,
  }));
  const ready = await planEnds(await here.proposed(), { changes: 150 }, many);
  expect(ready?.preview?.changes).toHaveLength(100);
  expect(ready?.preview?.summary?.changes).toBe(150);

  await here.seen([drift("input.b")]);
  const large = { a: "x".repeat(50_000), password: "" };
  const sized = await planEnds(
    await here.proposed(),
    { changes: 5 },
    Array.from({ length: 5 }, () => ({ ...change, before: { a: "edited" }, after: large })),
  );
  expect(sized?.preview?.changes).toHaveLength(2);
});

test("refreshing shows what it records, and is ready at once", async () => {
  await here.seen([
    drift("input.a"),
    { address: "terraform_data.gone", kind: DriftKind.RESOURCE_MISSING },
    { address: "terraform_data.extra", kind: DriftKind.RESOURCE_UNMANAGED },
  ]);
  const proposal = await here.proposed(REFRESH);
  expect(proposal).toMatchObject({ destructive: false, preview: { state: PreviewState.READY } });
  expect(proposal.preview?.changes).toMatchObject([
    {
      address: "terraform_data.app",
      actions: ["update"],
      before: { "input.a": "declared" },
      after: { "input.a": "edited" },
    },
    { address: "terraform_data.gone", actions: ["forget"] },
  ]);
  expect(await service.runOut("preview")).not.toContain(proposal.proposalId);
  expect(service.provisioning.planned).toEqual([]);
});
