import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { MalformedEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { PromotionApprovedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/promotion_pb";
import { ApprovalDecidedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import { ReconciliationDecidedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/inventory_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { ApprovalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/run_control_pb";
import { ProposalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import {
  ProvisioningKind,
  RunMode,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { IllegalTransition, NotFound } from "@runtime-cloud/service-kit/errors";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  declare,
  environmentCreated,
  eventAbout,
  type IacService,
  plan,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";

let service: IacService;
beforeAll(async () => {
  service = await startIacProvisioning({ BASELINE_PROGRAM: "environment-baseline-manifests@1.0.0" });
});
afterAll(() => service.close());

const runsOf = (environmentId: string) =>
  service.database.provisioningRun.findMany({ where: { environmentId }, orderBy: { id: "asc" } });

async function created(of: EnvironmentClass) {
  const environmentId = uuidv7();
  await service.deliver(environmentCreated("t1", of, environmentId));
  await service.work();
  const [run] = await runsOf(environmentId);
  if (!run) throw new Error("no baseline was planned");
  return { environmentId, run };
}

const promotionApproved = (environmentId: string, changes = {}) => {
  const fields = {
    promotionId: uuidv7(),
    tenantId: "t1",
    projectId: uuidv7(),
    environmentId,
    releaseId: uuidv7(),
    approvalId: uuidv7(),
    programVersion: "web-service@1.0.0",
    parameters: { name: "shop", environment: "e1", version: "2.0.0" },
    ...changes,
  };
  return {
    fields,
    event: () => eventAbout(PromotionApprovedSchema, fields, { id: fields.promotionId, tenantId: "t1" }),
  };
};

const approvalDecided = (runId: string, state: ApprovalState, changes = {}, at = new Date()) => {
  const fields = { approvalId: uuidv7(), runId, tenantId: "t1", state, decidedBy: "carol", ...changes };
  return eventAbout(ApprovalDecidedSchema, fields, { id: fields.approvalId, tenantId: "t1" }, at);
};

test("ProvisionBaseline founds a new environment by the baseline program, with what that asks for", async () => {
  const { environmentId, run } = await created(EnvironmentClass.STAGING);
  expect(run).toMatchObject({
    kind: "BASELINE",
    mode: "APPLY",
    state: "APPLIED",
    requestedBy: "event:ProvisionBaseline",
  });
  const [specification] = await service.database.specification.findMany({ where: { environmentId } });
  expect(specification).toMatchObject({
    kind: "BASELINE",
    state: "APPLIED",
    parameters: { environment: environmentId, environment_class: "STAGING", region: "local" },
  });
});

test("founds an environment once, however often it is announced", async () => {
  const { environmentId } = await created(EnvironmentClass.STAGING);
  await service.deliver(environmentCreated("t1", EnvironmentClass.STAGING, environmentId));
  await service.deliver(environmentCreated("t1", EnvironmentClass.PRODUCTION, environmentId));
  expect(await runsOf(environmentId)).toHaveLength(1);
  const environment = await service.database.environment.findUniqueOrThrow({ where: { id: environmentId } });
  expect(environment.class).toBe("STAGING");
});

test("refuses an event whose envelope speaks of another tenant", async () => {
  const event = { ...environmentCreated("t1", EnvironmentClass.TEST), tenantid: "t2" };
  await expect(service.deliver(event)).rejects.toBeInstanceOf(MalformedEvent);
});

test("ApplyApproval applies a production baseline once its approval is decided, and ignores the decision after that", async () => {
  const { run } = await created(EnvironmentClass.PRODUCTION);
  expect(run.state).toBe("AWAITING_APPROVAL");
  await service.deliver(approvalDecided(run.id, ApprovalState.PENDING));
  expect(await service.state(run.id)).toBe("AWAITING_APPROVAL");

  await service.deliver(approvalDecided(run.id, ApprovalState.APPROVED));
  await service.deliver(approvalDecided(run.id, ApprovalState.APPROVED));
  await service.work();
  await service.deliver(approvalDecided(run.id, ApprovalState.REJECTED));
  const applied = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: run.id } });
  expect(applied).toMatchObject({ state: "APPLIED", decidedBy: "carol" });
});

test.each([ApprovalState.REJECTED, ApprovalState.EXPIRED, ApprovalState.STALE, ApprovalState.CANCELLED])(
  "ends a run whose approval ended as %s",
  async (state) => {
    const { run } = await created(EnvironmentClass.PRODUCTION);
    await service.deliver(approvalDecided(run.id, state));
    const ended = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: run.id } });
    expect(ended.state).toBe("REJECTED");
    expect(ended.reason).toContain(`is ${ApprovalState[state]}`);
  },
);

test("ApplyApproval leaves a run waiting whose approval has a state from a newer Control Plane", async () => {
  const { run } = await created(EnvironmentClass.PRODUCTION);
  const decision = approvalDecided(run.id, ApprovalState.REJECTED);
  await service.deliver({ ...decision, data: { ...decision.data, state: "APPROVAL_STATE_DELEGATED" } });
  await service.deliver({ ...decision, id: uuidv7(), data: { ...decision.data, state: 99 } });
  expect(await service.state(run.id)).toBe("AWAITING_APPROVAL");
  await service.deliver(approvalDecided(run.id, ApprovalState.APPROVED));
  expect(await service.state(run.id)).toBe("APPROVED");
});

test("has a decision tried again that comes before its plan, and ignores one about somebody else's run", async () => {
  const environmentId = uuidv7();
  await service.deliver(environmentCreated("t1", EnvironmentClass.PRODUCTION, environmentId));
  const [run] = await runsOf(environmentId);
  const decision = approvalDecided(run?.id ?? "", ApprovalState.APPROVED);
  await expect(service.deliver(decision)).rejects.toBeInstanceOf(IllegalTransition);
  await service.work();
  await service.deliver(decision);
  expect(await service.state(run?.id ?? "")).toBe("APPROVED");
  await service.deliver(approvalDecided(uuidv7(), ApprovalState.APPROVED));
  await service.work();
});

test("ProvisionPromotion applies a production promotion with the approval that it came with, once", async () => {
  const { environmentId, run: baseline } = await created(EnvironmentClass.PRODUCTION);
  await service.deliver(approvalDecided(baseline.id, ApprovalState.APPROVED));
  await service.work();
  const { fields, event } = promotionApproved(environmentId, { approvedBy: "dora" });
  await service.deliver(event());
  await service.deliver(event());
  await service.deliver(approvalDecided(uuidv7(), ApprovalState.APPROVED, { approvalId: fields.approvalId }));
  await service.work();

  const [, promotion, ...others] = await runsOf(environmentId);
  expect(others).toEqual([]);
  const { promotionId, approvalId } = fields;
  expect(promotion).toMatchObject({
    kind: "PROMOTION",
    state: "APPLIED",
    promotionId,
    approvalId,
    requestedBy: "dora",
  });
  const applied = (await service.announced(promotion?.id ?? "")).at(-1);
  expect(applied).toMatchObject({ event: "ProvisioningApplied", data: { promotionId, specificationVersion: 1 } });
  const { specifications } = await service
    .as("t1")
    .listSpecifications({ environmentId, kind: SpecificationKind.RELEASE });
  expect(specifications[0]).toMatchObject({ releaseId: fields.releaseId });
  await service.deliver(event());
  expect(await runsOf(environmentId)).toHaveLength(2);
});

test("has a promotion tried again that comes before its environment", async () => {
  const environmentId = uuidv7();
  const { event } = promotionApproved(environmentId);
  await expect(service.deliver(event())).rejects.toBeInstanceOf(NotFound);
  await service.deliver(environmentCreated("t1", EnvironmentClass.STAGING, environmentId));
  await service.deliver(event());
  await service.work();
  expect((await runsOf(environmentId)).map(({ kind, state }) => [kind, state])).toEqual([
    ["BASELINE", "APPLIED"],
    ["PROMOTION", "APPLIED"],
  ]);
});

test("takes no approval from before a plan for one that has to be reviewed", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const specificationId = await declare(client, { ...webService(environmentId), reviewDestructive: true });
  await plan(client, specificationId);
  await service.work();
  const teardown = await plan(client, specificationId, ProvisioningKind.TEARDOWN, RunMode.DESTROY);
  const approvalId = uuidv7();
  await service.database.provisioningRun.update({ where: { id: teardown }, data: { approvalId } });
  await service.work();

  const before = new Date(Date.now() - 60_000);
  await service.deliver(approvalDecided(uuidv7(), ApprovalState.APPROVED, { approvalId }, before));
  expect(await service.state(teardown)).toBe("AWAITING_APPROVAL");
  await service.deliver(approvalDecided(uuidv7(), ApprovalState.APPROVED, { approvalId }));
  expect(await service.state(teardown)).toBe("APPROVED");
  await service.work();
});

test("ConfirmReconciliation finds the run of an accepted proposal, or plans the one that is missing, once", async () => {
  const { environmentId } = await created(EnvironmentClass.STAGING);
  const decided = (state: ProposalState, proposalId: string) =>
    eventAbout(
      ReconciliationDecidedSchema,
      { proposalId, tenantId: "t1", environmentId, state },
      { id: proposalId, tenantId: "t1" },
    );
  await service.deliver(decided(ProposalState.REJECTED, uuidv7()));
  expect(await runsOf(environmentId)).toHaveLength(1);

  const proposalId = uuidv7();
  await service.deliver(decided(ProposalState.ACCEPTED, proposalId));
  await service.deliver(decided(ProposalState.ACCEPTED, proposalId));
  await service.work();
  const [, reconciliation, ...others] = await runsOf(environmentId);
  expect(others).toEqual([]);
  expect(reconciliation).toMatchObject({ kind: "RECONCILIATION", proposalId, state: "APPLIED" });
});
