import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import {
  ProvisioningKind,
  ResourceOutcome,
  RunMode,
  RunState,
  SpecificationKind,
  SpecificationState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  type IacService,
  type ProvisioningClient,
  refusalOf,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";

let service: IacService;
beforeAll(async () => {
  service = await startIacProvisioning();
});
afterAll(() => service.close());

const baseline = (environmentId: string, parameters = {}) => ({
  environmentId,
  kind: SpecificationKind.BASELINE,
  programVersion: "environment-baseline@1.0.0",
  parameters: { environment: "e1", ...parameters },
});
/** Declares, plans and works on it. */
async function provision(
  tenantId: string,
  declaration: Parameters<ProvisioningClient["declareSpecification"]>[0],
  kind = ProvisioningKind.BASELINE,
  mode = RunMode.APPLY,
) {
  const client = service.as(tenantId);
  const { specification } = await client.declareSpecification(declaration);
  const specificationId = specification?.specificationId ?? "";
  const { run } = await client.planProvisioning({ specificationId, kind, mode });
  await service.work();
  const provisioningRunId = run?.provisioningRunId ?? "";
  const ended = await client.getProvisioningRun({ provisioningRunId });
  if (!ended.run) throw new Error("no run");
  return { client, specificationId, provisioningRunId, run: ended.run };
}

test("plans and applies a terraform program, and tells what it did", async () => {
  const environmentId = await service.environment("t1");
  const { client, provisioningRunId, specificationId, run } = await provision("t1", baseline(environmentId));

  expect(run).toMatchObject({
    state: RunState.APPLIED,
    requestedBy: "alice",
    planSummary: { adds: 4, changes: 0, deletes: 0, replaces: 0, destructive: false },
    outputs: { subnet_ids: { a: expect.any(String), b: expect.any(String) } },
  });
  expect(run.engine).toMatch(/^(terraform|opentofu) \d/);
  const { entries } = await client.getReceipt({ provisioningRunId });
  expect(entries.map(({ outcome }) => outcome)).toEqual(Array(4).fill(ResourceOutcome.APPLIED));
  const plan = await client.getPlan({ provisioningRunId });
  expect(plan.changes.map(({ address }) => address)).toEqual(entries.map(({ address }) => address));
  expect(plan.planDigest).toMatch(/^sha256:/);

  const { specification } = await client.getSpecification({ specificationId });
  expect(specification?.state).toBe(SpecificationState.APPLIED);
  expect((await service.announced(provisioningRunId)).map(({ event }) => event)).toEqual([
    "ProvisioningPlanned",
    "ProvisioningApplied",
  ]);
  expect(await service.database.runLogLine.count({ where: { runId: provisioningRunId } })).toBeGreaterThan(5);
});

test("applies a run without changes at once, with its outputs and an empty receipt", async () => {
  const environmentId = await service.environment("t1");
  const first = await provision("t1", baseline(environmentId));
  const { run } = await first.client.planProvisioning({
    specificationId: first.specificationId,
    kind: ProvisioningKind.RECONCILIATION,
    mode: RunMode.APPLY,
  });
  await service.work();

  const provisioningRunId = run?.provisioningRunId ?? "";
  const again = await first.client.getProvisioningRun({ provisioningRunId });
  expect(again.run).toMatchObject({ state: RunState.APPLIED, outputs: first.run.outputs });
  expect((await first.client.getReceipt({ provisioningRunId })).entries).toEqual([]);
  const events = await service.announced(provisioningRunId);
  expect(events.map(({ event }) => event)).toEqual(["ProvisioningPlanned", "ProvisioningApplied"]);
  expect(events[1]?.data["outputs"]).toEqual(first.run.outputs);
});

test("names the sensitive outputs of a run without changes too, and keeps their values sealed", async () => {
  const first = await provision("t1", {
    environmentId: await service.environment("t1"),
    kind: SpecificationKind.BASELINE,
    programVersion: "managed-database@1.0.0",
    parameters: { environment: "e1", admin_password: "n0body-knows-it", owner_passwords: { app: "n0r-this-one" } },
  });
  const { run } = await first.client.planProvisioning({
    specificationId: first.specificationId,
    kind: ProvisioningKind.RECONCILIATION,
    mode: RunMode.APPLY,
  });
  await service.work();

  const provisioningRunId = run?.provisioningRunId ?? "";
  const again = await first.client.getProvisioningRun({ provisioningRunId });
  const { state, outputs, sensitiveOutputs } = first.run;
  expect(state).toBe(RunState.APPLIED);
  expect(sensitiveOutputs).toEqual(["admin_connection_string", "connection_strings"]);
  expect(again.run).toMatchObject({ state: RunState.APPLIED, planSummary: { adds: 0 }, outputs, sensitiveOutputs });
  const { sealedOutputs } = await service.database.provisioningRun.findUniqueOrThrow({
    where: { id: provisioningRunId },
  });
  expect(sealedOutputs?.length).toBeGreaterThan(0);
});

test("writes the files of a manifests program", async () => {
  const environmentId = await service.environment("t1");
  const { run } = await provision("t1", webService(environmentId), ProvisioningKind.PROMOTION);
  expect(run).toMatchObject({
    state: RunState.APPLIED,
    engine: "manifests 1.0.0",
    outputs: { components: [{ name: "shop", version: "1.2.3", replicas: 2 }] },
  });
  const file = path.join(service.targets, "t1", environmentId, "release", "deployment.yaml");
  expect(await readFile(file, "utf8")).toContain("registry.local/app:1.2.3");
});

test("only plans when only a plan is asked for, beside a run that holds the environment", async () => {
  const environmentId = await service.environment("t1", "PRODUCTION");
  const waiting = await provision("t1", baseline(environmentId));
  expect(waiting.run.state).toBe(RunState.AWAITING_APPROVAL);

  const { client, run, provisioningRunId } = await provision(
    "t1",
    baseline(environmentId),
    ProvisioningKind.BASELINE,
    RunMode.PLAN_ONLY,
  );
  expect(run).toMatchObject({ state: RunState.PLANNED, planSummary: { adds: 4 } });
  expect((await refusalOf(client.getReceipt({ provisioningRunId }))).message).toContain(
    "is PLANNED: it applied nothing",
  );
  expect((await service.announced(provisioningRunId)).map(({ event }) => event)).toEqual(["ProvisioningPlanned"]);
  expect(await service.state(waiting.provisioningRunId)).toBe("AWAITING_APPROVAL");
});

test("names the resource that failed, and the receipt says what was applied and what was not", async () => {
  const environmentId = await service.environment("t1");
  const broken = { ...webService(environmentId), programVersion: "broken-service@1.0.0", parameters: {} };
  const { client, provisioningRunId, specificationId, run } = await provision("t1", broken, ProvisioningKind.PROMOTION);

  expect(run.state).toBe(RunState.PARTIALLY_APPLIED);
  expect(run.reason).toMatch(/^ENGINE_ERROR: .*terraform_data\.service/);
  const { entries } = await client.getReceipt({ provisioningRunId });
  expect(Object.fromEntries(entries.map(({ address, outcome }) => [address, ResourceOutcome[outcome]]))).toEqual({
    "terraform_data.network": "APPLIED",
    "terraform_data.volume": "APPLIED",
    "terraform_data.service": "FAILED",
    "terraform_data.route": "NOT_ATTEMPTED",
  });
  const failed = (await service.announced(provisioningRunId)).find(({ event }) => event === "ProvisioningFailed");
  expect(failed?.data["reason"]).toBe(run.reason);
  const { specification } = await client.getSpecification({ specificationId });
  expect(specification?.state).toBe(SpecificationState.DECLARED);
});

test("tears down what was applied", async () => {
  const environmentId = await service.environment("t1");
  const { client, specificationId } = await provision("t1", webService(environmentId), ProvisioningKind.PROMOTION);
  const { run } = await client.planProvisioning({
    specificationId,
    kind: ProvisioningKind.TEARDOWN,
    mode: RunMode.DESTROY,
  });
  await service.work();

  const provisioningRunId = run?.provisioningRunId ?? "";
  const ended = await client.getProvisioningRun({ provisioningRunId });
  expect(ended.run).toMatchObject({ state: RunState.APPLIED, planSummary: { deletes: 4, destructive: true } });
  expect((await client.getSpecification({ specificationId })).specification?.state).toBe(SpecificationState.WITHDRAWN);
  const file = path.join(service.targets, "t1", environmentId, "release", "deployment.yaml");
  await expect(readFile(file)).rejects.toThrow("ENOENT");
});

test("puts the version that was applied before out of force", async () => {
  const environmentId = await service.environment("t1");
  const first = await provision("t1", webService(environmentId), ProvisioningKind.PROMOTION);
  const second = await provision("t1", webService(environmentId, { replicas: 3 }), ProvisioningKind.PROMOTION);
  expect(second.run).toMatchObject({ state: RunState.APPLIED, specificationVersion: 2 });
  const { specifications } = await first.client.listSpecifications({ environmentId });
  expect(specifications.map(({ version, state }) => [version, SpecificationState[state]])).toEqual([
    [2, "APPLIED"],
    [1, "SUPERSEDED"],
  ]);
});

test("gives plan and receipt only where there are some", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const { specification } = await client.declareSpecification(baseline(environmentId));
  const { run } = await client.planProvisioning({
    specificationId: specification?.specificationId ?? "",
    kind: ProvisioningKind.BASELINE,
    mode: RunMode.APPLY,
  });
  const provisioningRunId = run?.provisioningRunId ?? "";
  const refusal = await refusalOf(client.getPlan({ provisioningRunId }));
  expect(refusal.code).toBe(Code.NotFound);
  expect(refusal.message).toContain("is QUEUED: it has no plan");
  expect((await refusalOf(client.getReceipt({ provisioningRunId: uuidv7() }))).code).toBe(Code.NotFound);
  await service.work();
});

test("keeps no plan that can't be applied any more", async () => {
  const kept = await service.database.provisioningRun.count({
    where: { sealedPlan: { not: null }, endedAt: { not: null } },
  });
  expect(kept).toBe(0);
});
