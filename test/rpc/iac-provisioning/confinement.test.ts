import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  ProvisioningKind,
  RunMode,
  RunState,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { type IacService, startIacProvisioning } from "../../_support/iac-provisioning.ts";

let folder: string;
let service: IacService;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "confinement-"));
  await chmod(folder, 0o711);
  service = await startIacProvisioning({
    WORK_DIR: path.join(folder, "work"),
    ENGINE_UID: "65534",
    ENGINE_FILE_MB: "1",
  });
});
afterAll(async () => {
  await service.close();
  await rm(folder, { recursive: true });
});

test("a run's engine has the user that the settings give it and the network that its program wants", async () => {
  const { state, log } = await runScript("confined", "network: none\n", "echo uid=$(id -u) $(wc -l < /proc/net/dev)");
  expect(state).toBe(RunState.APPLIED);
  // Two lines of headings, and the loopback.
  expect(log).toMatch(/uid=65534 3$/m);
});

test("a run that reaches a limit fails with the limit's code, its setting and the resource", async () => {
  const { state, reason } = await runScript("too-large", "", "dd if=/dev/zero of=large bs=1M count=3");
  // The resource that failed is in the state, marked to be replaced.
  expect(state).toBe(RunState.PARTIALLY_APPLIED);
  expect(reason).toMatch(/^LIMIT_EXCEEDED: terraform_data\.script: .*ENGINE_FILE_MB/);
});

/** Publishes a program whose one resource runs a shell script, and applies it in an environment of its own. */
async function runScript(name: string, declarations: string, script: string) {
  const directory = path.join(service.programs, name, "1.0.0");
  await mkdir(directory, { recursive: true });
  await writeFile(
    path.join(directory, "program.yaml"),
    `engine: terraform\ndescription: Runs a script.\n${declarations}`,
  );
  await writeFile(
    path.join(directory, "main.tf"),
    `resource "terraform_data" "script" {\n  provisioner "local-exec" { command = "${script}" }\n}\n`,
  );

  const client = service.as("tenant");
  const environmentId = await service.environment("tenant");
  const { specification } = await client.declareSpecification({
    environmentId,
    kind: SpecificationKind.BASELINE,
    programVersion: `${name}@1.0.0`,
  });
  const specificationId = specification?.specificationId ?? "";
  const planned = await client.planProvisioning({
    specificationId,
    kind: ProvisioningKind.BASELINE,
    mode: RunMode.APPLY,
  });
  await service.work();
  const provisioningRunId = planned.run?.provisioningRunId ?? "";
  const { run } = await client.getProvisioningRun({ provisioningRunId });
  const lines = await service.database.runLogLine.findMany({
    where: { runId: provisioningRunId },
    orderBy: { number: "asc" },
  });
  return { state: run?.state, reason: run?.reason ?? "", log: lines.map(({ text }) => text).join("\n") };
}
