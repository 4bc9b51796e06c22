import { gzipSync } from "node:zlib";
import { readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Code, type ConnectError } from "@connectrpc/connect";
import { BadRequestSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  declare,
  type IacService,
  plan,
  type ProvisioningClient,
  refusalOf,
  startIacProvisioning,
} from "../../_support/iac-provisioning.ts";
import { archiveOf, tarOf } from "../../_support/program-archive.ts";

let service: IacService;
let client: ProvisioningClient;
beforeAll(async () => {
  service = await startIacProvisioning();
  client = service.as("t1");
});
afterAll(() => service.close());

const cache = () => path.join(service.context.settings.WORK_DIR, "programs");

/** A terraform program whose one output says which content it has. */
const filesOf = (content: string) => ({
  "program.yaml": "engine: terraform\ndescription: Greets.\nparameters:\n  name: { type: string, required: true }\n",
  "main.tf": `
variable "name" { type = string }
module "greeting" {
  source = "./modules/greeting"
  name   = var.name
}
output "greeting" { value = module.greeting.text }
`,
  "modules/greeting/main.tf": `
variable "name" { type = string }
resource "terraform_data" "greeting" { input = "${content}, \${var.name}" }
output "text" { value = terraform_data.greeting.output }
`,
});

let published = 0;
/** Publishes a program of its own and returns its \`name@version\`. */
async function publish(content = "hello"): Promise<string> {
  const programVersion = `greeter-${(published += 1)}@1.0.0`;
  await client.publishProgram({ programVersion, archive: await archiveOf(filesOf(content)) });
  return programVersion;
}

const declaration = async (programVersion: string, tenantId = "t1") => ({
  environmentId: await service.environment(tenantId),
  kind: SpecificationKind.RELEASE,
  programVersion,
  parameters: { name: "world" },
});

const violations = (refusal: ConnectError) =>
  refusal.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);

test("a published program is declared, planned and applied like any other", async () => {
  const archive = await archiveOf(filesOf("hello"));
  const { program } = await client.publishProgram({ programVersion: "greeter@1.0.0", archive });
  expect(program).toMatchObject({
    programVersion: "greeter@1.0.0",
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    engine: "terraform",
    description: "Greets.",
    parameters: [{ name: "name", type: "string", required: true }],
    installed: false,
    publishedBy: "alice",
  });

  const runId = await plan(client, await declare(client, await declaration("greeter@1.0.0")));
  await service.work();
  const { run } = await client.getProvisioningRun({ provisioningRunId: runId });
  expect(run).toMatchObject({ outputs: { greeting: "hello, world" } });
  expect(await service.state(runId)).toBe("APPLIED");
});

test("the same content again is what exists, whoever packed it; other content is refused", async () => {
  const programVersion = await publish("first");
  const repacked = gzipSync(
    await tarOf(
      Object.entries(filesOf("first"))
        .reverse()
        .map(([name, content]) => ({ name: `./${name}`, content })),
    ),
  );
  const again = await service.as("t1", "bob").publishProgram({ programVersion, archive: repacked });
  expect(again.program).toMatchObject({ programVersion, publishedBy: "alice" });

  const refusal = await refusalOf(
    client.publishProgram({ programVersion, archive: await archiveOf(filesOf("other")) }),
  );
  expect(refusal.code).toBe(Code.AlreadyExists);
  expect(refusal.rawMessage).toMatch(
    /^greeter-\d+@1\.0\.0 was published with other content, sha256:[0-9a-f]{64}: publish sha256:[0-9a-f]{64} as another version$/,
  );
});

test("of two that publish one version at once with other content, one is refused", async () => {
  const archives = await Promise.all(["one", "two"].map((content) => archiveOf(filesOf(content))));
  const results = await Promise.allSettled(
    archives.map((archive) => client.publishProgram({ programVersion: "racing@1.0.0", archive })),
  );
  expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
});

test("the same key again returns the first answer, also after another version was published", async () => {
  const request = {
    programVersion: "keyed@1.0.0",
    archive: await archiveOf(filesOf("keyed")),
    idempotencyKey: uuidv7(),
  };
  const first = await client.publishProgram(request);
  expect(await client.publishProgram(request)).toEqual(first);
  const other = await refusalOf(client.publishProgram({ ...request, programVersion: "keyed@1.0.1" }));
  expect(violations(other).map(({ field }) => field)).toEqual(["idempotencyKey"]);
});

test("a program of the installation can't be published over", async () => {
  const archive = await archiveOf(filesOf("mine"));
  const refusal = await refusalOf(client.publishProgram({ programVersion: "web-service@1.0.0", archive }));
  expect(refusal).toMatchObject({
    code: Code.AlreadyExists,
    rawMessage: "web-service@1.0.0 is a program of this installation: publish yours under another name or version",
  });
});

test.each<[string, Record<string, string>, string]>([
  ["no declaration", { "main.tf": "" }, "has no program.yaml at its root"],
  [
    "a declaration that makes no sense",
    { "program.yaml": "engine: ansible\ndescription: x\n" },
    'program.yaml: engine: Invalid option: expected one of "terraform"|"manifests"',
  ],
  [
    "a default of another type",
    { "program.yaml": "engine: terraform\ndescription: x\nparameters: { size: { type: integer, default: many } }\n" },
    "program.yaml: parameters.size.default: must be of type integer, not string",
  ],
  ...[
    "main_override.tf",
    "override.tf.json",
    "secret.auto.tfvars",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    ".terraform/modules/modules.json",
    ".terraformrc",
  ].map((name): [string, Record<string, string>, string] => [
    name,
    { ...filesOf("x"), [name]: "" },
    `${name}: override, auto.tfvars, state and CLI configuration files are not allowed in a program`,
  ]),
])("an archive with %s is refused by its field", async (_, files, description) => {
  const refusal = await refusalOf(
    client.publishProgram({ programVersion: "bad@1.0.0", archive: await archiveOf(files) }),
  );
  expect(refusal.code).toBe(Code.InvalidArgument);
  expect(violations(refusal)).toMatchObject([{ field: "archive", description }]);
});

test("an archive that is none, or larger than a call may carry, is refused by its field", async () => {
  const plain = await refusalOf(client.publishProgram({ programVersion: "bad@1.0.0", archive: Buffer.from("plain") }));
  expect(violations(plain).map(({ field }) => field)).toEqual(["archive"]);
  const large = await refusalOf(
    client.publishProgram({ programVersion: "bad@1.0.0", archive: new Uint8Array(3 * 1024 * 1024 + 1) }),
  );
  expect(violations(large).map(({ field }) => field)).toEqual(["archive"]);
});

test.each(["a--b@1.0.0", "a@1.0", "a@v1.0.0", "a@1.0.0+build"])(
  "%s is refused as no version of a program",
  async (programVersion) => {
    const refusal = await refusalOf(client.publishProgram({ programVersion, archive: await archiveOf(filesOf("x")) }));
    expect(violations(refusal)).toMatchObject([
      { field: "programVersion", description: expect.stringMatching(/^is not name@version, like web-service@1\.0\.0/) },
    ]);
  },
);

test("another tenant neither sees nor uses it, and may give the same name to its own", async () => {
  const programVersion = await publish("mine");
  const other = service.as("t2");
  const refusal = await refusalOf(other.declareSpecification(await declaration(programVersion, "t2")));
  expect(violations(refusal)).toMatchObject([
    {
      field: "programVersion",
      description: `${programVersion} is no program that is there: publish it, or name one that ListPrograms lists`,
    },
  ]);
  const { program } = await other.publishProgram({ programVersion, archive: await archiveOf(filesOf("theirs")) });
  expect(program).toMatchObject({ programVersion, installed: false });
});

test("a version that isn't there is answered with those that are", async () => {
  const name = (await publish("x")).split("@")[0] ?? "";
  for (const version of ["1.9.0", "1.10.0"]) {
    await client.publishProgram({ programVersion: `${name}@${version}`, archive: await archiveOf(filesOf(version)) });
  }
  const refusal = await refusalOf(client.declareSpecification(await declaration(`${name}@2.0.0`)));
  expect(violations(refusal)).toMatchObject([
    {
      description:
        `${name}@2.0.0 is no program that is there: publish it, or name a version that is there: ` +
        `${name}@1.10.0, ${name}@1.9.0, ${name}@1.0.0`,
    },
  ]);
});

test("a run is planned where the program never was, and where somebody wrote to it", async () => {
  const programVersion = await publish("kept");
  const specificationId = await declare(client, await declaration(programVersion));
  await rm(cache(), { recursive: true });
  expect(await readdir(service.context.settings.WORK_DIR)).toEqual([]);
  const first = await plan(client, specificationId);
  await service.work();
  expect(await service.state(first)).toBe("APPLIED");

  for (const digest of await readdir(cache())) {
    await writeFile(path.join(cache(), digest, "main.tf"), 'output "greeting" { value = "evil" }');
  }
  const second = await plan(client, specificationId);
  await service.work();
  const { run } = await client.getProvisioningRun({ provisioningRunId: second });
  expect(run).toMatchObject({ outputs: { greeting: "kept, world" } });
});

test("what is stored and was damaged is refused, by the program's name", async () => {
  const programVersion = await publish("damaged");
  const [name = "", version = ""] = programVersion.split("@");
  await service.database.publishedProgram.update({
    where: { tenantId_name_version: { tenantId: "t1", name, version } },
    data: { archive: new Uint8Array(await archiveOf(filesOf("evil"))) },
  });
  await rm(cache(), { recursive: true, force: true });
  const refusal = await refusalOf(client.declareSpecification(await declaration(programVersion)));
  expect(violations(refusal)).toMatchObject([
    { description: `program ${programVersion}: what is stored of it is damaged: publish it as another version` },
  ]);
});
