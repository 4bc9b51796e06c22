import { mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { toJson } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { type Program, ProgramSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/programs_pb";
import {
  type IacService,
  type ProvisioningClient,
  refusalOf,
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

const DECLARATION = `
engine: manifests
description: Takes all sorts.
parameters:
  password: { type: string, default: hunter2-canary, sensitive: true, description: Secret. }
  hosts: { type: list, default: [a, b] }
  name: { type: string, required: true }
`;

const publishAs = async (of: ProvisioningClient, programVersion: string) =>
  of.publishProgram({ programVersion, archive: await archiveOf({ "program.yaml": DECLARATION }) });
const versions = (programs: readonly Program[]) => programs.map(({ programVersion }) => programVersion);

test("lists the installation's programs and the tenant's own, in order, with what they take", async () => {
  await publishAs(client, "a-first@1.0.0");
  await publishAs(client, "z-last@1.0.0");
  const { programs, unusable, nextPageToken } = await client.listPrograms({});
  expect(versions(programs)).toEqual([
    "a-first@1.0.0",
    "broken-service-manifests@1.0.0",
    "broken-service@1.0.0",
    "environment-baseline-manifests@1.0.0",
    "environment-baseline@1.0.0",
    "environment-baseline@1.1.0",
    "managed-database@1.0.0",
    "storefront@1.0.0",
    "web-service@1.0.0",
    "worker-pool@1.0.0",
    "z-last@1.0.0",
  ]);
  expect({ unusable, nextPageToken }).toEqual({ unusable: [], nextPageToken: "" });
  expect(programs.find(({ programVersion }) => programVersion === "worker-pool@1.0.0")).toMatchObject({
    installed: true,
    engine: "terraform",
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    parameters: [{ name: "generation" }, { name: "pool_id", type: "string", required: true }, { name: "size" }],
  });
});

test("masks the default of a sensitive parameter", async () => {
  await publishAs(client, "secretive@1.0.0");
  const { programs } = await client.listPrograms({});
  const secretive = programs.find(({ programVersion }) => programVersion === "secretive@1.0.0");
  if (!secretive) throw new Error("it isn't listed");
  expect(toJson(ProgramSchema, secretive)).toMatchObject({
    publishedBy: "alice",
    publishedAt: expect.any(String),
    parameters: [
      { name: "hosts", defaultValue: ["a", "b"] },
      { name: "name", required: true },
      { name: "password", sensitive: true, defaultValue: "(sensitive value)", description: "Secret." },
    ],
  });
  expect(JSON.stringify(toJson(ProgramSchema, secretive))).not.toContain("hunter2-canary");
});

test("pages through all of them, of one engine too, and refuses another list's token", async () => {
  const walk = async (engine: string) => {
    const found: string[] = [];
    let pageToken = "";
    do {
      const page = await client.listPrograms({ engine, pageSize: 2, pageToken });
      expect(page.programs.length).toBeLessThanOrEqual(2);
      found.push(...versions(page.programs));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return found;
  };
  const all = await client.listPrograms({});
  expect(await walk("")).toEqual(versions(all.programs));
  for (const engine of ["terraform", "manifests"]) {
    expect(await walk(engine)).toEqual(versions(all.programs.filter((program) => program.engine === engine)));
  }
  const { nextPageToken } = await client.listPrograms({ engine: "terraform", pageSize: 1 });
  expect((await refusalOf(client.listPrograms({ pageToken: nextPageToken }))).code).toBe(Code.InvalidArgument);
  expect((await refusalOf(client.listPrograms({ engine: "ansible" }))).rawMessage).toContain(
    "must be terraform or manifests",
  );
});

test("shows another tenant's programs to nobody else", async () => {
  await publishAs(service.as("t2"), "theirs@1.0.0");
  expect(versions((await client.listPrograms({})).programs)).not.toContain("theirs@1.0.0");
  expect(versions((await service.as("t2").listPrograms({})).programs)).toContain("theirs@1.0.0");
});

test("says of a program that can't be used why, and never where it lies", async () => {
  const odd = path.join(service.programs, "odd");
  for (const version of ["1.0.0", "2.0.0", "3.0.0"]) await mkdir(path.join(odd, version), { recursive: true });
  await writeFile(path.join(odd, "1.0.0/program.yaml"), "engine: ansible\ndescription: x\n");
  await symlink("/etc/passwd", path.join(odd, "2.0.0/notes.txt"));
  const { programs, unusable } = await client.listPrograms({});
  expect(versions(programs).filter((version) => version.startsWith("odd@"))).toEqual([]);
  expect(unusable).toEqual([
    expect.stringMatching(/^odd@1\.0\.0: program\.yaml: engine: /),
    "odd@2.0.0: notes.txt: only plain files and directories are allowed, no links or devices",
    "odd@3.0.0: has no program.yaml at its root",
  ]);
  expect(unusable.join()).not.toContain(service.programs);
});
