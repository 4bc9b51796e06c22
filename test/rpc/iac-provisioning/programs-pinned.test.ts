import { appendFile, mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import {
  declare,
  type IacService,
  plan,
  type ProvisioningClient,
  startIacProvisioning,
} from "../../_support/iac-provisioning.ts";
import { archiveOf } from "../../_support/program-archive.ts";

let service: IacService;
let client: ProvisioningClient;
beforeAll(async () => {
  service = await startIacProvisioning();
  client = service.as("t1");
});
afterAll(() => service.close());

const DECLARATION = "engine: manifests\ndescription: Holds a setting.\noutputs: { mood: fine }\n";
const TEMPLATE = "kind: ConfigMap\ndata: { mood: fine }\n";

/** Installs \`name@1.0.0\` and declares it. */
async function declareInstalled(name: string) {
  const directory = path.join(service.programs, name, "1.0.0");
  await mkdir(path.join(directory, "templates"), { recursive: true });
  await writeFile(path.join(directory, "program.yaml"), DECLARATION);
  await writeFile(path.join(directory, "templates/settings.yaml"), TEMPLATE);
  const declared = await declareVersion(`${name}@1.0.0`);
  return { ...declared, directory };
}

async function declareVersion(programVersion: string) {
  const environmentId = await service.environment("t1");
  const kind = SpecificationKind.RELEASE;
  return {
    environmentId,
    specificationId: await declare(client, { environmentId, kind, programVersion, parameters: {} }),
  };
}

async function ended(runId: string) {
  await service.work();
  const { reason } = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: runId } });
  return { state: await service.state(runId), reason };
}

const change = (directory: string) => appendFile(path.join(directory, "templates/settings.yaml"), "# other\n");
const CHANGED =
  /program pinned-\w+@1\.0\.0: its content has changed since it was declared \(sha256:[0-9a-f]{64} then, sha256:[0-9a-f]{64} now\): put back what it was, or give the new content a version of its own and declare that/;

test("a program whose content changes after it was declared is not planned", async () => {
  const { directory, specificationId } = await declareInstalled("pinned-plan");
  await change(directory);
  const { state, reason } = await ended(await plan(client, specificationId));
  expect(state).toBe("FAILED");
  expect(reason).toMatch(CHANGED);
  expect(reason).toMatch(/^INVALID_PROGRAM: /);
});

test("a program whose content changes after it was applied is not inspected, and is again once it is put back", async () => {
  const { directory, specificationId, environmentId } = await declareInstalled("pinned-inspect");
  expect(await ended(await plan(client, specificationId))).toMatchObject({ state: "APPLIED" });
  await change(directory);
  const changed = await client.inspectEnvironment({ environmentId });
  expect(changed.specifications).toMatchObject([{ failure: expect.stringMatching(CHANGED) }]);

  await writeFile(path.join(directory, "templates/settings.yaml"), TEMPLATE);
  const restored = await client.inspectEnvironment({ environmentId });
  expect(restored.specifications).toMatchObject([{ resources: [{ resourceType: "ConfigMap" }] }]);
});

test("a program that was taken away after it was declared is not planned", async () => {
  const { directory, specificationId } = await declareInstalled("pinned-gone");
  await rm(directory, { recursive: true });
  expect(await ended(await plan(client, specificationId))).toEqual({
    state: "FAILED",
    reason: "INVALID_PROGRAM: program pinned-gone@1.0.0: isn't here any more: put it back, or declare another version",
  });
});

test("a published program stays what was declared, though the installation gets one of the same name", async () => {
  const programVersion = "pinned-own@1.0.0";
  const archive = await archiveOf({ "program.yaml": DECLARATION, "templates/settings.yaml": TEMPLATE });
  await client.publishProgram({ programVersion, archive });
  const { specificationId } = await declareVersion(programVersion);
  const { directory } = await declareInstalled("pinned-own");
  await change(directory);
  expect(await ended(await plan(client, specificationId))).toMatchObject({ state: "APPLIED" });
});
