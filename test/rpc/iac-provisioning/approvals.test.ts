import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import {
  ProvisioningKind,
  RunMode,
  RunState,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { approvalDue, type ApprovalQuestion } from "@runtime-cloud/iac-provisioning/approval-rule";
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

const inProduction: ApprovalQuestion = {
  kind: "BASELINE",
  mode: "APPLY",
  environmentClass: "PRODUCTION",
  approvalId: null,
  destructive: false,
  reviewDestructive: false,
};

test.each([
  ["a production baseline", {}, true],
  ["a production reconciliation", { kind: "RECONCILIATION" as const }, true],
  ["a production teardown", { kind: "TEARDOWN" as const, mode: "DESTROY" as const }, true],
  ["a production resize", { kind: "POOL_RESIZE" as const }, true],
  ["a production promotion without its approval", { kind: "PROMOTION" as const }, true],
  ["a production promotion with its approval", { kind: "PROMOTION" as const, approvalId: "a" }, false],
  ["a plan only", { mode: "PLAN_ONLY" as const, destructive: true, reviewDestructive: true }, false],
  ["a staging baseline", { environmentClass: "STAGING" as const }, false],
  ["a destructive plan that nobody wants reviewed", { environmentClass: "TEST" as const, destructive: true }, false],
  [
    "a destructive promotion whose review was asked for, approved or not",
    { kind: "PROMOTION" as const, approvalId: "a", destructive: true, reviewDestructive: true },
    true,
  ],
])("%s waits for approval: %s", (_name, changes, due) => {
  expect(approvalDue({ ...inProduction, ...changes })).toBe(due);
});
