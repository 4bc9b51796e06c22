import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { RecoveryProblem } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { ProvisioningKind, RunMode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { ApplyOutcome } from "@runtime-cloud/iac-provisioning/engines/engine";
import type { EngineEvent } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import { writeSalvageFile } from "@runtime-cloud/iac-provisioning/recovery/salvage-files";
import { salvageWorkspaces } from "@runtime-cloud/iac-provisioning/recovery/salvage-workspaces";
import { sealSalvage } from "@runtime-cloud/iac-provisioning/recovery/salvaged-state";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { engineAt } from "../../_support/provisioning-children.ts";
import { writeGatedProgram, writeTwinProgram } from "../../_support/iac-programs.ts";
import {
  declare,
  type IacService,
  plan,
  type ProvisioningClient,
  refusalOf,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";
import { refuseStates } from "../../_support/refused-states.ts";

/** The CLI tries several times to send a state, with pauses. */
const SLOW_MS = 90_000;

let service: IacService;
let client: ProvisioningClient;
let environmentId: string;
let accept: (() => Promise<void>) | undefined;
beforeAll(async () => {
  service = await startIacProvisioning({ CANCEL_GRACE_SECONDS: "30" });
  client = service.as("t1");
});
beforeEach(async () => {
  environmentId = await service.environment("t1");
});
afterEach(async () => {
  await accept?.();
  accept = undefined;
});
afterAll(() => service.close());

test(
  "a state that the engine could not write is recorded by its executor, and the run has applied",
  async () => {
    accept = await refuseStates(service.context.pool, "the engine's");
    const { runId } = await planTwin();
    await service.work();
    const { run } = await client.getProvisioningRun({ provisioningRunId: runId });
    expect(run).toMatchObject({ outputs: { second: "first" } });
    expect(run?.reason).toBeUndefined();
    expect(await service.state(runId)).toBe("APPLIED");
    expect(await manifestOf(runId)).toEqual({ problems: {}, serial: 1n, additional: undefined });
  },
  SLOW_MS,
);

test(
  "a state that can't be recorded is kept, and the manifest says what it has that the recorded one lacks",
  async () => {
    accept = await refuseStates(service.context.pool, "everybody's");
    const { runId } = await planTwin();
    await service.work();
    expect(await service.state(runId)).toBe("INDETERMINATE");
    const { run } = await client.getProvisioningRun({ provisioningRunId: runId });
    expect(run?.reason).toMatch(/^STATE_PERSIST_FAILED: .*it is salvaged/);
    const announced = (await service.announced(runId)).at(-1);
    expect(announced).toMatchObject({ event: "ProvisioningFailed", data: { reason: run?.reason } });

    expect(await manifestOf(runId)).toEqual({
      problems: { "terraform_data.first": "CREATED_NOT_RECORDED", "terraform_data.second": "CREATED_NOT_RECORDED" },
      serial: undefined,
      additional: ["terraform_data.first", "terraform_data.second"],
    });
    const { entries } = await client.getRecoveryManifest({ provisioningRunId: runId });
    const { entries: receipt } = await client.getReceipt({ provisioningRunId: runId });
    expect(entries.map(({ resourceId }) => resourceId)).toEqual(receipt.map(({ resourceId }) => resourceId));
    expect(entries[0]).toMatchObject({
      resourceType: "terraform_data",
      resourceId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const kept = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: runId } });
    expect(Buffer.from(kept.sealedSalvage ?? []).toString("latin1")).not.toContain("terraform_data");
  },
  SLOW_MS,
);

test("the record of files that can't be recorded is kept as well", async () => {
  accept = await refuseStates(service.context.pool, "everybody's");
  const runId = await plan(client, await declare(client, webService(environmentId)));
  await service.work();
  expect(await service.state(runId)).toBe("INDETERMINATE");
  const { problems, additional } = await manifestOf(runId);
  expect(problems).toMatchObject({ "deployment.yaml": "CREATED_NOT_RECORDED" });
  expect(additional).toEqual(Object.keys(problems));
});

test(
  "the engine of a lost executor writes no state, and what it knew is kept for the operator",
  async () => {
    const gate = path.join(service.targets, uuidv7());
    const { runId, silent } = await startGated(gate);
    await service.loseExecutor(runId);
    expect(await service.database.engineStateCredential.count({ where: { holderId: runId } })).toBe(0);
    await silent;

    expect(await service.state(runId)).toBe("INDETERMINATE");
    expect(await service.database.engineStateVersion.count({ where: { environmentId } })).toBe(0);
    const manifest = await manifestOf(runId);
    expect(manifest.problems).toMatchObject({ "terraform_data.first": "CREATED_NOT_RECORDED" });
    expect(manifest.additional).toContain("terraform_data.first");
  },
  SLOW_MS,
);

test("of an engine that was killed, what had begun is INDETERMINATE in the receipt and unknown in the manifest", async () => {
  const gate = path.join(service.targets, uuidv7());
  const { runId, silent } = await startGated(gate);
  const engine = engineAt(service.context.settings.WORK_DIR, "apply");
  process.kill(engine?.pid ?? 0, "SIGKILL");
  await silent;
  expect(await service.state(runId)).toBe("INDETERMINATE");
  const receipt = await service.database.receiptEntry.findMany({ where: { runId }, orderBy: { ordinal: "asc" } });
  expect(receipt.map(({ outcome, resourceType }) => [outcome, resourceType])).toEqual([
    ["APPLIED", "terraform_data"],
    ["INDETERMINATE", "terraform_data"],
  ]);
  expect((await manifestOf(runId)).problems).toEqual({
    "terraform_data.first": "CREATED_NOT_RECORDED",
    "terraform_data.second": "RESULT_UNKNOWN",
  });
});

test("a run that ended in order has nothing to recover, and one that applied nothing has no manifest", async () => {
  const { runId, specificationId } = await planTwin();
  await service.work();
  expect(await manifestOf(runId)).toEqual({ problems: {}, serial: 1n, additional: undefined });

  const planned = await plan(client, specificationId, ProvisioningKind.PROMOTION, RunMode.PLAN_ONLY);
  await service.work();
  const refusal = await refusalOf(client.getRecoveryManifest({ provisioningRunId: planned }));
  expect(refusal).toMatchObject({ code: Code.NotFound, rawMessage: expect.stringContaining("it applied nothing") });
  const other = await refusalOf(service.as("t2").getRecoveryManifest({ provisioningRunId: runId }));
  expect(other).toMatchObject({ code: Code.NotFound, rawMessage: `provisioning run ${runId} does not exist` });
});

test("what a dead executor's engine could not write is kept with its run, and only then its directory goes", async () => {
  const runId = await indeterminateRun();
  const unknown = uuidv7();
  await leaveWorkspace(runId, stateText(7));
  await leaveWorkspace(unknown, stateText(1));
  await leaveWorkspace(uuidv7(), undefined);
  await leaveWorkspace(`inspection-${uuidv7()}`, undefined);
  await service.context.pool.query("ALTER TABLE provisioning_run RENAME TO hidden");
  await salvageWorkspaces(service.context);
  expect(await left()).toHaveLength(2);
  await service.context.pool.query("ALTER TABLE hidden RENAME TO provisioning_run");

  await salvageWorkspaces(service.context);
  const { salvagedState } = await client.getRecoveryManifest({ provisioningRunId: runId });
  expect(salvagedState).toMatchObject({ lineage: "history", serial: 7n, additionalAddresses: ["terraform_data.left"] });
  expect(await left()).toEqual([expect.stringContaining(unknown)]);

  await client.resolveIndeterminate({ provisioningRunId: runId, resolution: "nothing is left of it" });
  await leaveWorkspace(runId, stateText(7));
  await salvageWorkspaces(service.context);
  expect(await left()).toEqual([expect.stringContaining(unknown)]);
  const { sealedSalvage } = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: runId } });
  expect(sealedSalvage).toBeNull();
});

test("a state that was put on disk while the database was away is kept with its run once it is back", async () => {
  const runId = await indeterminateRun();
  const content = Buffer.from(stateText(3));
  await writeSalvageFile(service.context.settings.WORK_DIR, runId, sealSalvage(service.context, runId, content));
  await salvageWorkspaces(service.context);
  const { salvagedState } = await client.getRecoveryManifest({ provisioningRunId: runId });
  expect(salvagedState).toMatchObject({ serial: 3n });
  expect((await left()).filter((name) => name.includes(runId))).toEqual([]);
});

async function planTwin() {
  const programVersion = await writeTwinProgram(service.programs);
  const specificationId = await declare(client, { ...webService(environmentId), programVersion, parameters: {} });
  return { specificationId, runId: await plan(client, specificationId) };
}

/** Applies until its second resource has begun. */
async function startGated(gate: string) {
  const programVersion = await writeGatedProgram(service.programs);
  const specificationId = await declare(client, { ...webService(environmentId), programVersion, parameters: { gate } });
  const runId = await plan(client, specificationId);
  const silent = service.execute(runId);
  await until("the apply", 30_000, async () => {
    const begun = { runId, address: "terraform_data.second", outcome: "INDETERMINATE" as const };
    return (await service.database.receiptEntry.findFirst({ where: begun })) ?? undefined;
  });
  return { runId, silent };
}

/** As a run is whose executor was lost before its engine did anything. */
async function indeterminateRun(): Promise<string> {
  const { runId } = await planTwin();
  const { terraform } = service.context.engines;
  const refused = { ...terraform, apply: () => vanishing() };
  service.context.engines = { ...service.context.engines, terraform: refused };
  await service.work();
  service.context.engines = { ...service.context.engines, terraform };
  expect(await service.state(runId)).toBe("INDETERMINATE");
  return runId;
}

async function* vanishing(): AsyncGenerator<EngineEvent, ApplyOutcome> {
  yield { type: "log", level: "info", line: "nothing else is heard of it" };
  return { result: "indeterminate", outputs: {}, sensitiveOutputs: {} };
}

function stateText(serial: number): string {
  const resource = { mode: "managed", type: "terraform_data", name: "left", instances: [{ attributes: { id: "x" } }] };
  return JSON.stringify({ version: 4, serial, lineage: "history", outputs: {}, resources: [resource] });
}

/** A work directory of a process that is gone: no process has so large an id. */
async function leaveWorkspace(holderId: string, state: string | undefined): Promise<void> {
  const name = `terraform-${encodeURIComponent(holderId)}-99999999-1-${uuidv7().slice(-6)}`;
  const directory = path.join(service.context.settings.WORK_DIR, name, "program");
  await mkdir(directory, { recursive: true });
  if (state !== undefined) await writeFile(path.join(directory, "errored.tfstate"), state);
}

async function left(): Promise<string[]> {
  return readdir(service.context.settings.WORK_DIR);
}

async function manifestOf(provisioningRunId: string) {
  const { entries, recordedSerial, salvagedState } = await client.getRecoveryManifest({ provisioningRunId });
  return {
    problems: Object.fromEntries(entries.map(({ address, problem }) => [address, RecoveryProblem[problem]])),
    serial: recordedSerial,
    additional: salvagedState?.additionalAddresses,
  };
}
