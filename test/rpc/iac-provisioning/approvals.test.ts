import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import {
  ProvisioningKind,
  RunMode,
  RunState,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { approvalDue, type ApprovalQuestion } from "@runtime-cloud/iac-provisioning/runs/approval-rule";
import {
  declare,
  type IacService,
  plan,
  refusalOf,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";

let service: IacService;
beforeAll(async () => {
  service = await startIacProvisioning();
});
afterAll(() => service.close());

const OTHER_DIGEST = `sha256:${"0".repeat(64)}`;

/** A run of alice's in PRODUCTION that waits for its approval. */
async function waitingRun(tenantId: string) {
  const environmentId = await service.environment(tenantId, "PRODUCTION");
  const client = service.as(tenantId);
  const specificationId = await declare(client, {
    environmentId,
    kind: SpecificationKind.BASELINE,
    programVersion: "environment-baseline-manifests@1.0.0",
    parameters: { environment: "e1" },
  });
  const provisioningRunId = await plan(client, specificationId, ProvisioningKind.BASELINE);
  await service.work();
  const { planDigest } = await client.getPlan({ provisioningRunId });
  return { environmentId, specificationId, provisioningRunId, planDigest };
}

test("makes a production apply wait, and applies it once somebody else has approved this plan", async () => {
  const { provisioningRunId, planDigest } = await waitingRun("t1");
  const alice = service.as("t1");
  const bob = service.as("t1", "bob");
  const [planned] = await service.announced(provisioningRunId);
  expect(planned).toMatchObject({
    event: "ProvisioningPlanned",
    data: { planSummary: { awaitingApproval: true, planDigest } },
  });

  const own = await refusalOf(alice.approveProvisioning({ provisioningRunId, planDigest }));
  expect(own).toMatchObject({ code: Code.PermissionDenied });
  expect(own.rawMessage).toContain("somebody else has to approve it");
  const wrong = await refusalOf(bob.approveProvisioning({ provisioningRunId, planDigest: OTHER_DIGEST }));
  expect(wrong).toMatchObject({ code: Code.FailedPrecondition });
  expect(wrong.rawMessage).toContain(`the plan to review is ${planDigest}`);
  expect(await service.state(provisioningRunId)).toBe("AWAITING_APPROVAL");

  const { run } = await bob.approveProvisioning({ provisioningRunId, planDigest });
  expect(run).toMatchObject({ state: RunState.APPROVED, decidedBy: "bob" });
  await service.work();
  expect(await service.state(provisioningRunId)).toBe("APPLIED");
});

test.each([
  ["by whoever asked for it", "alice"],
  ["by nobody", null],
])("the database itself lets no production run be approved %s", async (_, decidedBy) => {
  const { provisioningRunId: id } = await waitingRun("t1");
  const approve = service.database.provisioningRun.update({ where: { id }, data: { state: "APPROVED", decidedBy } });
  await expect(approve).rejects.toThrow("provisioning_run_approved_by_another");
  expect(await service.state(id)).toBe("AWAITING_APPROVAL");
});

test("approves a run once: a repeat under the same key gets the first answer, another one is refused", async () => {
  const { provisioningRunId, planDigest } = await waitingRun("t1");
  const bob = service.as("t1", "bob");
  const request = { provisioningRunId, planDigest, idempotencyKey: "a1" };
  const first = await bob.approveProvisioning(request);
  expect(await bob.approveProvisioning(request)).toEqual(first);
  expect((await refusalOf(bob.approveProvisioning({ provisioningRunId, planDigest }))).code).toBe(
    Code.FailedPrecondition,
  );
  await service.work();
});

test("ends a rejected run and says why", async () => {
  const { provisioningRunId } = await waitingRun("t1");
  const { run } = await service.as("t1", "bob").rejectProvisioning({ provisioningRunId, reason: "not today" });
  expect(run).toMatchObject({ state: RunState.REJECTED, reason: "REJECTED: not today", decidedBy: "bob" });
  const events = await service.announced(provisioningRunId);
  expect(events.at(-1)).toMatchObject({ event: "ProvisioningFailed", data: { reason: "REJECTED: not today" } });
});

test("lets a plan expire that nobody decides on", async () => {
  const { provisioningRunId, planDigest } = await waitingRun("t1");
  expect(await service.runOut("plan-expiry")).toEqual([]);
  await service.database.$executeRaw`
    UPDATE provisioning_run SET expires_at = clock_timestamp() - interval '1 second' WHERE id = ${provisioningRunId}::uuid`;
  expect(await service.runOut("plan-expiry")).toEqual([provisioningRunId]);
  expect(await service.state(provisioningRunId)).toBe("EXPIRED");
  const history = await service.database.transition.findMany({ where: { aggregateId: provisioningRunId } });
  expect(history.at(-1)).toMatchObject({ actor: "deadline:plan-expiry", event: "expire" });
  expect(new Set(history.map(({ correlationId, traceparent }) => `${correlationId} ${traceparent}`)).size).toBe(1);
  const late = await refusalOf(service.as("t1", "bob").approveProvisioning({ provisioningRunId, planDigest }));
  expect(late.code).toBe(Code.FailedPrecondition);
});

test("never applies an approved plan whose time is over", async () => {
  const { provisioningRunId, planDigest } = await waitingRun("t1");
  await service.as("t1", "bob").approveProvisioning({ provisioningRunId, planDigest });
  await service.database.$executeRaw`
    UPDATE provisioning_run SET expires_at = clock_timestamp() - interval '1 second' WHERE id = ${provisioningRunId}::uuid`;
  await service.work();
  expect(await service.state(provisioningRunId)).toBe("EXPIRED");
});

test("never applies a plan whose engine state, program or specification has moved", async () => {
  const { provisioningRunId, planDigest } = await waitingRun("t1");
  await service.as("t1", "bob").approveProvisioning({ provisioningRunId, planDigest });
  await service.database.provisioningRun.update({
    where: { id: provisioningRunId },
    data: { stateSerial: 7, stateLineage: "other" },
  });
  await service.work();
  const { run } = await service.as("t1").getProvisioningRun({ provisioningRunId });
  expect(run?.state).toBe(RunState.SUPERSEDED);
  expect(run?.reason).toContain("it was made from serial 7 of the engine's state, which is now at serial 0");
});

test("supersedes a run that waits for approval when a newer version is declared", async () => {
  const { environmentId, provisioningRunId } = await waitingRun("t1");
  await declare(service.as("t1"), {
    environmentId,
    kind: SpecificationKind.BASELINE,
    programVersion: "environment-baseline-manifests@1.0.0",
    parameters: { environment: "e2" },
  });
  expect(await service.state(provisioningRunId)).toBe("SUPERSEDED");
});

test("makes a destructive plan wait anywhere when the specification asks for its review", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const reviewed = { ...webService(environmentId), reviewDestructive: true };
  const specificationId = await declare(client, reviewed);
  const runId = await plan(client, specificationId);
  await service.work();
  expect(await service.state(runId)).toBe("APPLIED");

  const teardown = await plan(client, specificationId, ProvisioningKind.TEARDOWN, RunMode.DESTROY);
  await service.work();
  expect(await service.state(teardown)).toBe("AWAITING_APPROVAL");
  await client.cancelProvisioning({ provisioningRunId: teardown });
});

/** Who waits for an approval: the rule as the documentation has it. */
const KINDS = ["BASELINE", "PROMOTION", "RECONCILIATION", "POOL_RESIZE", "TEARDOWN"] as const;
const CLASSES = ["DEVELOPMENT", "TEST", "STAGING", "PRODUCTION"] as const;
const NO = { approvalId: null, destructive: false, reviewDestructive: false };
const modeOf = (kind: ApprovalQuestion["kind"]) => (kind === "TEARDOWN" ? "DESTROY" : "APPLY");

const waits = (environmentClass: (typeof CLASSES)[number], changes: Partial<ApprovalQuestion>) =>
  KINDS.filter((kind) => approvalDue({ ...NO, kind, mode: modeOf(kind), environmentClass, ...changes }));

describe.each(CLASSES)("in %s", (environmentClass) => {
  const inProduction = environmentClass === "PRODUCTION";
  const approved = { approvalId: "a" };
  const destroys = { destructive: true };
  const reviewed = { reviewDestructive: true };

  test.each([
    ["a plan that destroys nothing", {}, inProduction ? KINDS : []],
    ["one whose run came with an approval", approved, inProduction ? KINDS.filter((kind) => kind !== "PROMOTION") : []],
    ["a destructive one that nobody wants reviewed", destroys, inProduction ? KINDS : []],
    ["a destructive one to review", { ...destroys, ...reviewed }, KINDS],
    ["a destructive one to review that came with an approval", { ...destroys, ...reviewed, ...approved }, KINDS],
    ["one to review that destroys nothing", reviewed, inProduction ? KINDS : ["TEARDOWN"]],
    ["any that is only planned", { ...destroys, ...reviewed, mode: "PLAN_ONLY" as const }, []],
  ])("%s waits for: its kind's approval", (_name, changes, due) => {
    expect(waits(environmentClass, changes)).toEqual(due);
  });
});

test("refreshing what is recorded waits in PRODUCTION only", () => {
  const refresh = { ...NO, kind: "RECONCILIATION", mode: "REFRESH_ONLY" } as const;
  expect(CLASSES.filter((environmentClass) => approvalDue({ ...refresh, environmentClass }))).toEqual(["PRODUCTION"]);
});

test("refuses another request under the key of an approval", async () => {
  const { provisioningRunId, planDigest } = await waitingRun("t1");
  const other = await waitingRun("t1");
  const bob = service.as("t1", "bob");
  await bob.approveProvisioning({ provisioningRunId, planDigest, idempotencyKey: "once" });
  const refusal = await refusalOf(
    bob.approveProvisioning({
      provisioningRunId: other.provisioningRunId,
      planDigest: other.planDigest,
      idempotencyKey: "once",
    }),
  );
  expect(refusal.code).toBe(Code.InvalidArgument);
  expect(refusal.rawMessage).toContain("idempotencyKey: was used for another request already");
  expect(await service.state(other.provisioningRunId)).toBe("AWAITING_APPROVAL");
  await service.work();
});
