import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import {
  ProvisioningKind,
  ResourceOutcome,
  RunMode,
  RunState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { writeGatedProgram } from "../../_support/iac-programs.ts";
import {
  declare,
  type IacService,
  plan,
  refusalOf,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";

let service: IacService;
let gated: string;
beforeAll(async () => {
  service = await startIacProvisioning();
  gated = await writeGatedProgram(service.programs);
});
afterAll(() => service.close());

/** A run that an executor applies, held up by its second resource until `open`. */
async function applyingRun(tenantId: string) {
  const environmentId = await service.environment(tenantId);
  const client = service.as(tenantId);
  const gate = path.join(service.targets, uuidv7());
  const specificationId = await declare(client, {
    ...webService(environmentId),
    programVersion: gated,
    parameters: { gate },
  });
  const runId = await plan(client, specificationId);
  const worked = service.execute(runId);
  await until("the second resource's start", 20_000, async () => {
    const started = { runId, address: "terraform_data.second", outcome: "INDETERMINATE" as const };
    return (await service.database.receiptEntry.findFirst({ where: started })) ?? undefined;
  });
  return { environmentId, specificationId, client, runId, worked, open: () => writeFile(gate, "") };
}

const receipt = async (client: ReturnType<IacService["as"]>, provisioningRunId: string) => {
  const { entries } = await client.getReceipt({ provisioningRunId });
  return Object.fromEntries(entries.map(({ address, outcome }) => [address, ResourceOutcome[outcome]]));
};

test("lets one run at a time into an environment, first in, first out", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const specificationId = await declare(client, webService(environmentId));
  const [first, second, third] = [
    await plan(client, specificationId),
    await plan(client, specificationId, ProvisioningKind.RECONCILIATION),
    await plan(client, specificationId, ProvisioningKind.RECONCILIATION),
  ];
  await service.execute(third);
  await service.execute(second);
  expect(await Promise.all([first, second, third].map(service.state))).toEqual(["QUEUED", "QUEUED", "QUEUED"]);
  await service.work();
  const started = await service.database.transition.findMany({
    where: { aggregateId: { in: [first, second, third] }, event: "start" },
    orderBy: { id: "asc" },
  });
  expect(started.map(({ aggregateId }) => aggregateId)).toEqual([first, second, third]);
});

test("starts a run once, however many executors are sent for it", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const runId = await plan(client, await declare(client, webService(environmentId)));
  await Promise.all([1, 2, 3, 4].map(() => service.execute(runId)));
  expect(await service.state(runId)).toBe("APPLIED");
  const history = await service.database.transition.findMany({
    where: { aggregateId: runId },
    orderBy: { version: "asc" },
  });
  expect(history.map(({ event }) => event)).toEqual(["create", "start", "plan", "startApply", "complete"]);
});

test("cancels a queued run at once, and lets the next one in", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const specificationId = await declare(client, webService(environmentId));
  const provisioningRunId = await plan(client, specificationId);
  const next = await plan(client, specificationId);
  const { run } = await client.cancelProvisioning({ provisioningRunId, reason: "changed our mind" });
  expect(run).toMatchObject({ state: RunState.CANCELLED, reason: "CANCELLED: changed our mind", decidedBy: "alice" });
  expect(await service.announced(provisioningRunId)).toEqual([]);
  expect((await refusalOf(client.cancelProvisioning({ provisioningRunId }))).code).toBe(Code.FailedPrecondition);
  await service.work();
  expect(await service.state(next)).toBe("APPLIED");
});

test("interrupts an apply that is cancelled, and says what was applied by then", async () => {
  const { client, runId: provisioningRunId, worked } = await applyingRun("t1");
  const asked = await client.cancelProvisioning({ provisioningRunId, reason: "stop" });
  expect(asked.run?.state).toBe(RunState.CANCELLING);
  const again = await client.cancelProvisioning({ provisioningRunId });
  expect(again.run?.state).toBe(RunState.CANCELLING);
  await worked;

  const { run } = await client.getProvisioningRun({ provisioningRunId });
  expect(run?.state).toBe(RunState.PARTIALLY_APPLIED);
  expect(run?.reason).toMatch(/^INTERRUPTED: /);
  const entries = await receipt(client, provisioningRunId);
  expect(entries["terraform_data.first"]).toBe("APPLIED");
  expect(entries["terraform_data.second"]).not.toBe("APPLIED");
});

test("kills an engine by force only after a cancel, and then says that nobody knows", async () => {
  const { client, runId: provisioningRunId, worked, environmentId, specificationId } = await applyingRun("t1");
  const early = await refusalOf(client.cancelProvisioning({ provisioningRunId, force: true }));
  expect(early.code).toBe(Code.FailedPrecondition);
  // Both before the executor's next heartbeat, which then kills rather than interrupts.
  await client.cancelProvisioning({ provisioningRunId });
  await client.cancelProvisioning({ provisioningRunId, force: true });
  await worked;

  const { run } = await client.getProvisioningRun({ provisioningRunId });
  expect(run?.state).toBe(RunState.INDETERMINATE);
  expect(await receipt(client, provisioningRunId)).toEqual({
    "terraform_data.first": "APPLIED",
    "terraform_data.second": "INDETERMINATE",
  });

  const unsettled = await refusalOf(client.withdrawSpecification({ specificationId }));
  expect(unsettled.rawMessage).toContain("is DECLARED: withdraw refused (being-applied)");
  const blocked = await plan(client, specificationId, ProvisioningKind.RECONCILIATION, RunMode.APPLY);
  await service.work();
  expect(await service.state(blocked)).toBe("QUEUED");
  const resolved = await client.resolveIndeterminate({
    provisioningRunId,
    resolution: "looked: the second isn't there",
  });
  expect(resolved.run).toMatchObject({ state: RunState.RESOLVED, reason: "RESOLVED: looked: the second isn't there" });
  await client.cancelProvisioning({ provisioningRunId: blocked });
  const settled = await refusalOf(client.withdrawSpecification({ specificationId }));
  expect(settled.rawMessage).toContain(`run ${provisioningRunId} of it changed the environment`);
  const inspected = await client.inspectEnvironment({ environmentId });
  expect(inspected.specifications).toEqual([]);
});

test("refuses kinds and modes that don't go together, and kinds of another specification", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const specificationId = await declare(client, webService(environmentId));
  const wrong = [
    { kind: ProvisioningKind.TEARDOWN, mode: RunMode.APPLY },
    { kind: ProvisioningKind.PROMOTION, mode: RunMode.DESTROY },
    { kind: ProvisioningKind.PROMOTION, mode: RunMode.REFRESH_ONLY },
    { kind: ProvisioningKind.BASELINE, mode: RunMode.APPLY },
  ];
  for (const request of wrong) {
    const refusal = await refusalOf(client.planProvisioning({ specificationId, ...request }));
    expect(refusal.code).toBe(Code.InvalidArgument);
  }
  const one = await refusalOf(
    client.planProvisioning({ specificationId, kind: ProvisioningKind.TEARDOWN, mode: RunMode.APPLY }),
  );
  expect(one.rawMessage).toBe("mode: APPLY is no mode of TEARDOWN, which takes DESTROY, PLAN_ONLY");
});

test("plans once for a key, and once for a proposal", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const specificationId = await declare(client, webService(environmentId));
  const request = { specificationId, kind: ProvisioningKind.RECONCILIATION, mode: RunMode.APPLY };
  const keyed = await Promise.all([1, 2, 3].map(() => client.planProvisioning({ ...request, idempotencyKey: "k" })));
  expect(new Set(keyed.map(({ run }) => run?.provisioningRunId)).size).toBe(1);
  const proposalId = uuidv7();
  const proposed = await Promise.all([1, 2, 3].map(() => client.planProvisioning({ ...request, proposalId })));
  expect(new Set(proposed.map(({ run }) => run?.provisioningRunId)).size).toBe(1);
  expect((await client.listProvisioningRuns({ environmentId })).runs).toHaveLength(2);
});

test("shows another tenant no run", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const provisioningRunId = await plan(client, await declare(client, webService(environmentId)));
  const other = service.as("t2");
  const planDigest = `sha256:${"0".repeat(64)}`;
  const refusals = [
    other.getProvisioningRun({ provisioningRunId }),
    other.getPlan({ provisioningRunId }),
    other.getReceipt({ provisioningRunId }),
    other.cancelProvisioning({ provisioningRunId }),
    other.approveProvisioning({ provisioningRunId, planDigest }),
    other.rejectProvisioning({ provisioningRunId, reason: "mine now" }),
    other.resolveIndeterminate({ provisioningRunId, resolution: "mine now" }),
  ];
  for (const refusal of refusals) expect((await refusalOf(refusal)).code).toBe(Code.NotFound);
  expect((await other.listProvisioningRuns({ environmentId })).runs).toEqual([]);
  expect(await service.state(provisioningRunId)).toBe("QUEUED");
});
