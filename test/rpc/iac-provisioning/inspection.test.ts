import { readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { DriftKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import {
  ProvisioningKind,
  RunMode,
  RunState,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { declare, type IacService, plan, startIacProvisioning, webService } from "../../_support/iac-provisioning.ts";

let service: IacService;
beforeAll(async () => {
  service = await startIacProvisioning();
});
afterAll(() => service.close());

async function applied(tenantId: string) {
  const environmentId = await service.environment(tenantId);
  const client = service.as(tenantId);
  const releaseId = uuidv7();
  const specificationId = await declare(client, { ...webService(environmentId), releaseId });
  await plan(client, specificationId);
  await service.work();
  const folder = path.join(service.targets, tenantId, environmentId, "release");
  return { environmentId, client, releaseId, specificationId, folder };
}

test("finds what was applied in sync, with its components and its release", async () => {
  const { environmentId, client, releaseId, specificationId } = await applied("t1");
  const { specifications } = await client.inspectEnvironment({ environmentId });
  expect(specifications).toMatchObject([
    {
      specificationId,
      kind: SpecificationKind.RELEASE,
      version: 1,
      releaseId,
      drift: [],
      components: [{ name: "shop", version: "1.2.3", replicas: 2 }],
    },
  ]);
  expect(specifications[0]?.failure).toBeUndefined();
  expect(specifications[0]?.resources).toHaveLength(4);
  expect(await readdir(service.context.settings.WORK_DIR)).toEqual([]);
  expect(
    await service.database.engineStateCredential.count({
      where: { access: "read", holderId: { startsWith: "inspection" } },
    }),
  ).toBe(0);
});

test("finds an edited and a deleted file, and a reconciliation puts them right", async () => {
  const { environmentId, client, specificationId, folder } = await applied("t1");
  const deployment = path.join(folder, "deployment.yaml");
  await writeFile(deployment, "apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: 9\n");
  await rm(path.join(folder, "service.yaml"));

  const before = await client.inspectEnvironment({ environmentId });
  const drift = before.specifications[0]?.drift ?? [];
  expect(drift.find(({ address }) => address === "service.yaml")?.kind).toBe(DriftKind.RESOURCE_MISSING);
  const replicas = drift.find(({ attribute }) => attribute === "spec.replicas");
  expect(replicas).toMatchObject({
    kind: DriftKind.ATTRIBUTE_CHANGED,
    applied: { kind: { case: "numberValue", value: 2 } },
    observed: { kind: { case: "numberValue", value: 9 } },
  });

  const runId = await plan(client, specificationId, ProvisioningKind.RECONCILIATION, RunMode.APPLY);
  await service.work();
  expect((await client.getProvisioningRun({ provisioningRunId: runId })).run?.state).toBe(RunState.APPLIED);
  const after = await client.inspectEnvironment({ environmentId });
  expect(after.specifications[0]?.drift).toEqual([]);
});

test("says why an engine could not look, and never that nothing is there", async () => {
  const { environmentId, client } = await applied("t1");
  const { engines } = service.context;
  service.context.engines = {
    ...engines,
    manifests: {
      ...engines.manifests,
      async *drift() {
        throw new Error("a defect");
      },
    },
  };
  const { specifications } = await client.inspectEnvironment({ environmentId });
  service.context.engines = engines;
  expect(specifications).toMatchObject([
    { failure: expect.stringMatching(/^ENGINE_ERROR: /), resources: [], drift: [] },
  ]);
});

test("doesn't take half of an apply for drift", async () => {
  const { environmentId, client, specificationId } = await applied("t1");
  const runId = await plan(client, specificationId, ProvisioningKind.RECONCILIATION, RunMode.APPLY);
  await service.database.$executeRaw`ALTER TABLE provisioning_run DISABLE TRIGGER USER`;
  const applying = { state: "APPLYING" as const, applyingAt: new Date() };
  await service.database.provisioningRun.update({ where: { id: runId }, data: applying });
  await service.database.$executeRaw`ALTER TABLE provisioning_run ENABLE TRIGGER USER`;
  const { specifications } = await client.inspectEnvironment({ environmentId });
  expect(specifications[0]?.failure).toBe(`STATE_LOCKED: run ${runId} is applying: look again when it ended`);
});
