import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { ProvisioningKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { Engine } from "@runtime-cloud/iac-provisioning/engines/engine";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { writeTwinProgram } from "../../_support/iac-programs.ts";
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

let service: IacService;
let client: ProvisioningClient;
let environmentId: string;
let engines: IacService["context"]["engines"];
beforeAll(async () => {
  service = await startIacProvisioning();
  engines = service.context.engines;
  client = service.as("t1");
});
beforeEach(async () => {
  environmentId = await service.environment("t1");
});
afterEach(() => {
  service.context.engines = engines;
});
afterAll(() => service.close());

test("adopts a salvaged state, and the environment's queue goes on with it", async () => {
  const { runId, specificationId } = await salvagedRun(planTwin);
  const next = await plan(client, specificationId);
  await service.work();
  expect(await service.state(next)).toBe("QUEUED");

  const resolution = "the salvaged state is right";
  const resolved = await client.resolveIndeterminate({
    provisioningRunId: runId,
    resolution,
    adoptSalvagedState: true,
  });
  expect(resolved.run).toMatchObject({ reason: `RESOLVED: ${resolution}`, decidedBy: "alice" });
  const manifest = await client.getRecoveryManifest({ provisioningRunId: runId });
  expect(manifest).toMatchObject({ entries: [], recordedSerial: 1n });
  expect(manifest.salvagedState).toBeUndefined();

  await service.work();
  const { run } = await client.getProvisioningRun({ provisioningRunId: next });
  expect(run).toMatchObject({ planSummary: { adds: 0, changes: 0, deletes: 0 }, outputs: { second: "first" } });
  expect(await service.state(next)).toBe("APPLIED");
  expect((await specification(specificationId)).state).toBe("APPLIED");
}, 90_000);

test("without adopting, the salvaged state is let go, and the next run starts from the recorded one", async () => {
  const { runId, specificationId } = await salvagedRun(planFiles);
  await client.resolveIndeterminate({ provisioningRunId: runId, resolution: "none of it is used" });
  expect((await specification(specificationId)).state).toBe("DECLARED");
  const row = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: runId } });
  expect(row).toMatchObject({ state: "RESOLVED", sealedSalvage: null });

  const next = await plan(client, specificationId);
  await service.work();
  const { run } = await client.getProvisioningRun({ provisioningRunId: next });
  expect(run).toMatchObject({ planSummary: { adds: 0, changes: 0 } });
  expect(await service.state(next)).toBe("APPLIED");
  const { entries } = await client.getRecoveryManifest({ provisioningRunId: runId });
  expect(entries).toEqual([]);
});

test("refuses to adopt what isn't there, and what the recorded state has left behind", async () => {
  const { runId } = await salvagedRun(planFiles);
  const key = { tenantId: "t1", environmentId, kind: "RELEASE" };
  await service.database.engineState.updateMany({ where: key, data: { lineage: "another", serial: 1 } });
  const adopting = { provisioningRunId: runId, resolution: "adopt it", adoptSalvagedState: true };
  const outdated = await refusalOf(client.resolveIndeterminate(adopting));
  expect(outdated.code).toBe(Code.FailedPrecondition);
  expect(outdated.rawMessage).toMatch(/is INDETERMINATE: .*its lineage is .* resolve it without adopt_salvaged_state$/);
  expect(await service.state(runId)).toBe("INDETERMINATE");
  const kept = await client.getRecoveryManifest({ provisioningRunId: runId });
  expect(kept.salvagedState).toBeDefined();

  await service.database.provisioningRun.update({ where: { id: runId }, data: { sealedSalvage: null } });
  const nothing = await refusalOf(client.resolveIndeterminate(adopting));
  expect(nothing.code).toBe(Code.FailedPrecondition);
  expect(nothing.rawMessage).toMatch(/no state was salvaged; resolve it without adopt_salvaged_state$/);
  expect(await service.state(runId)).toBe("INDETERMINATE");
});

test("refuses to adopt a state while another run holds its lock", async () => {
  const { runId } = await salvagedRun(planFiles);
  const key = { tenantId: "t1", environmentId, kind: "RELEASE" };
  const holder = uuidv7();
  await service.context.states.breakLock(key, runId);
  await service.context.states.lock(key, { id: "lock", runId: holder, epoch: 1, info: "{}" });
  const adopting = { provisioningRunId: runId, resolution: "adopt it", adoptSalvagedState: true };
  expect((await refusalOf(client.resolveIndeterminate(adopting))).rawMessage).toContain(`run ${holder} holds`);
  await service.context.states.breakLock(key, holder);
  await client.resolveIndeterminate(adopting);
  expect(await service.state(runId)).toBe("RESOLVED");
});

test("takes the state's lock from the run that died with it, and its credential is gone", async () => {
  const { runId } = await salvagedRun(planFiles);
  const key = { tenantId: "t1", environmentId, kind: "RELEASE" };
  await service.context.states.lock(key, { id: "dead", runId, epoch: 2, info: "{}" });
  expect(await service.database.engineStateCredential.count({ where: { holderId: runId } })).toBe(0);
  await client.resolveIndeterminate({ provisioningRunId: runId, resolution: "looked after" });
  const state = await service.database.engineState.findUniqueOrThrow({ where: { tenantId_environmentId_kind: key } });
  expect(state).toMatchObject({ lockId: null, lockRunId: null, lockEpoch: null, lockInfo: null });
});

test("resolves only what is INDETERMINATE, once, and only its own tenant's", async () => {
  const { runId } = await salvagedRun(planFiles);
  const resolving = { provisioningRunId: runId, resolution: "looked after", adoptSalvagedState: true };
  expect((await refusalOf(service.as("t2").resolveIndeterminate(resolving))).code).toBe(Code.NotFound);
  await client.resolveIndeterminate(resolving);
  for (const adoptSalvagedState of [true, false]) {
    const again = await refusalOf(client.resolveIndeterminate({ ...resolving, adoptSalvagedState }));
    expect(again).toMatchObject({ code: Code.FailedPrecondition, rawMessage: expect.stringContaining("is RESOLVED") });
  }
  expect(await service.database.engineStateVersion.count({ where: { environmentId } })).toBe(1);
});

test("of two executors that race for an approved run one applies it, by the one plan there is", async () => {
  const { runId } = await planTwin();
  const { terraform } = service.context.engines;
  let applies = 0;
  const counting: Engine = {
    ...terraform,
    apply(job) {
      applies += 1;
      return terraform.apply(job);
    },
  };
  service.context.engines = { ...service.context.engines, terraform: counting };
  await Promise.all([service.execute(runId), service.execute(runId), service.execute(runId)]);
  await service.work();
  expect(await service.state(runId)).toBe("APPLIED");
  expect(applies).toBe(1);
  const row = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: runId } });
  expect(row).toMatchObject({ sealedPlan: null, sensitiveOutputs: ["hidden"], outputs: { second: "first" } });
  expect(row.sealedOutputs).not.toBeNull();
  expect(await service.database.engineStateCredential.count({ where: { holderId: runId } })).toBe(0);
});

test("a state that moves after the apply has begun fails it as a stale plan, and nothing is done", async () => {
  const { runId, specificationId } = await planTwin();
  const { terraform } = service.context.engines;
  const key = { tenantId: "t1", environmentId, kind: "RELEASE" };
  const overtaken: Engine = {
    ...terraform,
    async *apply(job) {
      const lock = { id: "other", runId: job.state.username, epoch: 2, info: "{}" };
      await service.context.states.lock(key, lock);
      const moved = { lineage: "other", serial: 5, digest: "sha256:0", sealed: new Uint8Array(sealedState()) };
      await service.context.states.write(key, moved, lock);
      await service.context.states.unlock(key, lock);
      return yield* terraform.apply(job);
    },
  };
  service.context.engines = { ...service.context.engines, terraform: overtaken };
  await service.work();
  const { run } = await client.getProvisioningRun({ provisioningRunId: runId });
  expect(await service.state(runId)).toBe("FAILED");
  expect(run?.reason).toMatch(/^STALE_PLAN: /);
  const receipt = await service.database.receiptEntry.findMany({ where: { runId } });
  expect(receipt.map(({ outcome }) => outcome)).toEqual(["NOT_ATTEMPTED", "NOT_ATTEMPTED"]);
  expect((await specification(specificationId)).state).toBe("DECLARED");

  function sealedState() {
    const content = JSON.stringify({ version: 4, lineage: "other", serial: 5, outputs: {}, resources: [] });
    const context = `${JSON.stringify(["t1", environmentId, "RELEASE"])} other 5`;
    return service.context.box.seal(Buffer.from(content), "engine-state", context);
  }
});

interface PlannedRun {
  specificationId: string;
  runId: string;
}

async function planFiles(): Promise<PlannedRun> {
  const specificationId = await declare(client, webService(environmentId));
  return { specificationId, runId: await plan(client, specificationId) };
}

async function planTwin(): Promise<PlannedRun> {
  const programVersion = await writeTwinProgram(service.programs);
  const specificationId = await declare(client, { ...webService(environmentId), programVersion, parameters: {} });
  return { specificationId, runId: await plan(client, specificationId, ProvisioningKind.PROMOTION) };
}

/** A run whose state nobody could record until now. */
async function salvagedRun(planned: () => Promise<PlannedRun>): Promise<PlannedRun> {
  const accept = await refuseStates(service.context.pool, "everybody's");
  const run = await planned();
  await service.work();
  expect(await service.state(run.runId)).toBe("INDETERMINATE");
  await accept();
  return run;
}

function specification(id: string) {
  return service.database.specification.findUniqueOrThrow({ where: { id } });
}
