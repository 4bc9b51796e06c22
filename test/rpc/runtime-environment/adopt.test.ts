import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  DecideReconciliationRequest_Decision as Decision,
  ProposalPreview_State as PreviewState,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import {
  ProvisioningAppliedSchema,
  SpecificationDeclaredSchema,
} from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { FindingState, ProposalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import {
  ProvisioningKind,
  RunMode,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { ADOPT, drift, type Reconciling, reconciling } from "../../_support/reconciling.ts";
import {
  type EnvironmentService,
  eventAbout,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

let service: EnvironmentService;
let here: Reconciling;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  here = await reconciling(service);
  service.provisioning.parameters = { replicas: 2, name: "shop", token: "(sensitive value)" };
  service.provisioning.adoption = { parameters: { replicas: 9 } };
  await here.seen([drift("spec.replicas", "9")]);
});

test("what adopting would change is shown at once, parameter by parameter, and nothing is declared before a decision", async () => {
  const proposal = await here.proposed(ADOPT);
  expect(proposal).toMatchObject({ direction: ADOPT, destructive: false, preview: { state: PreviewState.READY } });
  expect(proposal.preview?.changes).toMatchObject([
    { address: "parameters.replicas", actions: ["update"], before: { value: 2 }, after: { value: 9 } },
  ]);
  expect(proposal.preview?.summary).toMatchObject({ adds: 0, changes: 0, deletes: 0, replaces: 0, destructive: false });
  expect(service.provisioning.adopted).toEqual([]);
  expect(service.provisioning.planned).toEqual([]);
  expect(await service.runOut("preview")).not.toContain(proposal.proposalId);
});

test("accepted, the version is declared once and its run is planned", async () => {
  const proposal = await here.proposed(ADOPT);
  const accepted = await here.decide(proposal);
  const [adopted, another] = service.provisioning.adopted;
  expect(another).toBeUndefined();
  expect(adopted?.request).toMatchObject({
    specificationId: here.specificationId,
    dryRun: false,
    values: [
      {
        address: "terraform_data.app",
        attribute: "spec.replicas",
        observed: { kind: { case: "stringValue", value: "9" } },
      },
    ],
  });
  expect(accepted).toMatchObject({
    state: ProposalState.ACCEPTED,
    adoptedSpecificationId: adopted?.specificationId,
  });
  expect(service.provisioning.planned).toMatchObject([
    {
      specificationId: adopted?.specificationId,
      kind: ProvisioningKind.RECONCILIATION,
      mode: RunMode.APPLY,
      proposalId: proposal.proposalId,
    },
  ]);
});

test("rejected, nothing is declared", async () => {
  await here.decide(await here.proposed(ADOPT), Decision.REJECT);
  expect(service.provisioning.adopted).toEqual([]);
});

test("the version that its run applies is the applied one, and its proposal is COMPLETED", async () => {
  const { environmentId, tenantId, proposed, decide, proposalNow, tenant } = here;
  const accepted = await decide(await proposed(ADOPT));
  const subject = { id: environmentId, tenantId };
  const declared = {
    ...{ specificationId: accepted?.adoptedSpecificationId ?? "", tenantId, environmentId, projectId: uuidv7() },
    ...{ kind: SpecificationKind.BASELINE, version: 2, programVersion: "network@1.0.0" },
  };
  await service.deliver(eventAbout(SpecificationDeclaredSchema, declared, subject));
  const run = {
    ...{ provisioningRunId: accepted?.provisioningRunId ?? "", kind: ProvisioningKind.RECONCILIATION, tenantId },
    ...{ projectId: uuidv7(), environmentId, specificationVersion: 2, outputs: {} },
  };
  await service.deliver(eventAbout(ProvisioningAppliedSchema, run, subject));
  expect(accepted && (await proposalNow(accepted))?.state).toBe(ProposalState.COMPLETED);
  const { environment } = await tenant.getEnvironment({ environmentId });
  expect(environment?.versions).toMatchObject([{ kind: "BASELINE", declared: 2, applied: 2 }]);
});

test("what no parameter stands for can't be proposed, and the refusal names the finding and why", async () => {
  const reason = "templates/web.yaml says it word for word: give the program a parameter for it";
  const refusals = [{ address: "terraform_data.app", attribute: "spec.replicas", reason }];
  service.provisioning.adoption = { refusals };
  const { code, rawMessage } = await refusalOf(here.proposed(ADOPT));
  const [finding] = await here.findings();
  expect(code).toBe(Code.InvalidArgument);
  expect(rawMessage).toBe(
    `findingIds: finding ${finding?.findingId} (terraform_data.app spec.replicas) can't be adopted: ${reason}`,
  );
  expect(finding?.state).toBe(FindingState.OPEN);
});

test("adopting isn't proposed while nobody can say what it would change", async () => {
  service.provisioning.adoption = new ConnectError("no engine", Code.Unavailable);
  expect((await refusalOf(here.proposed(ADOPT))).code).toBe(Code.Unavailable);
  service.provisioning.adoption = new ConnectError("version 2 is DECLARED", Code.FailedPrecondition);
  const { code, rawMessage } = await refusalOf(here.proposed(ADOPT));
  expect([code, rawMessage]).toEqual([
    Code.InvalidArgument,
    "direction: can't be ADOPT_OBSERVED: version 2 is DECLARED",
  ]);
});

test("a repeat under the same key is answered as the first time, whatever can be adopted by then", async () => {
  const { environmentId, tenant } = here;
  const request = { environmentId, direction: ADOPT, idempotencyKey: "adopt-1" };
  const first = await tenant.proposeReconciliation(request);
  service.provisioning.adoption = new ConnectError("no engine", Code.Unavailable);
  expect(await tenant.proposeReconciliation(request)).toEqual(first);
});

test("accepted while provisioning is down it is declared once it is up, once", async () => {
  const { proposed, decide, followedUp, proposalNow } = here;
  const proposal = await proposed(ADOPT);
  await service.provisioning.down();
  expect((await decide(proposal))?.state).toBe(ProposalState.ACCEPTING);
  await service.provisioning.up();
  await until("the proposal to be ACCEPTED", 20_000, async () => {
    await followedUp(proposal);
    return (await proposalNow(proposal))?.state === ProposalState.ACCEPTED || undefined;
  });
  expect(service.provisioning.adopted).toHaveLength(1);
  expect(service.provisioning.planned).toHaveLength(1);
});

test("a version that was declared isn't declared again when its run can't be planned at once", async () => {
  const { proposed, decide, followedUp, proposalNow } = here;
  const proposal = await proposed(ADOPT);
  service.provisioning.refusal = new ConnectError("busy", Code.Unavailable);
  const accepting = await decide(proposal);
  expect(accepting).toMatchObject({
    state: ProposalState.ACCEPTING,
    adoptedSpecificationId: service.provisioning.adopted[0]?.specificationId,
  });
  service.provisioning.refusal = undefined;
  await followedUp(proposal);
  expect((await proposalNow(proposal))?.state).toBe(ProposalState.ACCEPTED);
  expect(service.provisioning.adopted).toHaveLength(1);
});

test("what can't be adopted any more once it is accepted fails the proposal with the reason", async () => {
  const proposal = await here.proposed(ADOPT);
  const refusals = [{ address: "terraform_data.app", attribute: "spec.replicas", reason: "another value is there" }];
  service.provisioning.adoption = { refusals };
  expect(await here.decide(proposal)).toMatchObject({
    state: ProposalState.FAILED,
    reason: "terraform_data.app spec.replicas can't be adopted: another value is there",
  });
  expect(await here.findings()).toMatchObject([{ state: FindingState.OPEN }]);
});

test("only what was reviewed is adopted: drift that moved on while nobody answered fails the proposal", async () => {
  const { proposed, decide, followedUp, proposalNow, environmentId } = here;
  const proposal = await proposed(ADOPT);
  service.provisioning.adoption = new ConnectError("no engine", Code.Unavailable);
  await decide(proposal);
  await service.database.finding.updateMany({ where: { environmentId }, data: { observed: "11" } });
  service.provisioning.adoption = { parameters: { replicas: 11 } };
  await followedUp(proposal);
  expect(await proposalNow(proposal)).toMatchObject({
    state: ProposalState.FAILED,
    reason: "what is there has moved on since it was reviewed: propose again",
  });
  expect(service.provisioning.adopted).toEqual([]);
});
