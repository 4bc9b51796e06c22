import { canonicalJson, type JsonObject } from "@runtime-cloud/iac-provisioning/json/canonical-json";
import { parsedJsonObject } from "@runtime-cloud/iac-provisioning/json/parsed-json";
import { parseProgramDeclaration } from "@runtime-cloud/iac-provisioning/programs/program";
import { listPrograms, loadProgram } from "@runtime-cloud/iac-provisioning/programs/program-directory";
import { resolveParameters } from "@runtime-cloud/iac-provisioning/programs/program-parameters";
import { parseProgramVersion } from "@runtime-cloud/iac-provisioning/programs/program-version";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

import { EXAMPLES } from "./engine-bench.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "programs-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe("the example programs", () => {
  test("are all valid", async () => {
    const versions = await listPrograms(EXAMPLES);
    expect(versions).toEqual([
      "broken-service-manifests@1.0.0",
      "broken-service@1.0.0",
      "environment-baseline-manifests@1.0.0",
      "environment-baseline@1.0.0",
      "environment-baseline@1.1.0",
      "managed-database@1.0.0",
      "storefront@1.0.0",
      "web-service@1.0.0",
      "worker-pool@1.0.0",
    ]);
    for (const version of versions) {
      expect(await loadProgram(EXAMPLES, version)).toMatchObject({
        programVersion: version,
        digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      });
    }
  });
});

describe("a program's digest", () => {
  test("is that of its content, wherever it lies, and another for any other content or name", async () => {
    const original = await loadProgram(EXAMPLES, "web-service@1.0.0");
    await cp(path.join(EXAMPLES, "web-service/1.0.0"), path.join(directory, "copy/1.0.0"), { recursive: true });
    const copy = () => loadProgram(directory, "copy@1.0.0");
    expect((await copy())?.digest).toBe(original?.digest);

    const file = path.join(directory, "copy/1.0.0/templates/extra.yaml");
    await writeFile(file, "kind: A\n");
    const changed = (await copy())?.digest;
    expect(changed).not.toBe(original?.digest);
    await writeFile(file, "kind: B\n");
    expect((await copy())?.digest).not.toBe(changed);
  });

  test("is refused to a program that holds a link", async () => {
    await mkdir(path.join(directory, "linked/1.0.0"), { recursive: true });
    await writeFile(path.join(directory, "linked/1.0.0/program.yaml"), "engine: manifests\ndescription: x\n");
    await symlink("/etc/passwd", path.join(directory, "linked/1.0.0/notes.txt"));
    await expect(loadProgram(directory, "linked@1.0.0")).rejects.toThrow(
      "program linked@1.0.0: notes.txt: only plain files and directories are allowed",
    );
  });
});

test("a program that is not there is undefined", async () => {
  expect(await loadProgram(EXAMPLES, "web-service@9.9.9")).toBeUndefined();
  expect(await loadProgram(EXAMPLES, "nothing@1.0.0")).toBeUndefined();
});

test.each([
  "web-service",
  "web-service@",
  "@1.0.0",
  "../web-service@1.0.0",
  "web-service@../1.0.0",
  "web-service@1.0",
  "web-service@01.0.0",
  "Web@1.0.0",
  "web@1.0.0@2.0.0",
  "web@1.0.0\n",
])("%j is no program version", (text) => {
  expect(parseProgramVersion(text)).toBeUndefined();
});

test("a program version may be a pre-release", () => {
  expect(parseProgramVersion("web-service@1.0.0-rc.1")).toEqual({ name: "web-service", version: "1.0.0-rc.1" });
});

describe("parameters", () => {
  const program = parseProgramDeclaration(`
    engine: manifests
    description: Takes all types.
    parameters:
      name: { type: string, required: true }
      replicas: { type: integer, default: 2 }
      ratio: { type: number }
      debug: { type: boolean, default: false }
      hosts: { type: list, default: [] }
      labels: { type: object, default: { team: core } }
  `);

  test("that are left out get their defaults, or stay out", () => {
    expect(resolveParameters(program, { name: "shop", replicas: 5 })).toEqual({
      parameters: { name: "shop", replicas: 5, debug: false, hosts: [], labels: { team: "core" } },
      violations: [],
    });
  });

  test("that are missing, unknown or of another type are named one by one", () => {
    const { violations } = resolveParameters(program, {
      replicas: 1.5,
      ratio: "half",
      debug: null,
      hosts: { a: 1 },
      labels: [],
      size: 3,
    });
    expect(violations).toEqual([
      {
        field: "parameters.size",
        description: "is not a parameter of the program; it takes name, replicas, ratio, debug, hosts, labels",
      },
      { field: "parameters.name", description: "is required" },
      { field: "parameters.replicas", description: "must be of type integer, not number" },
      { field: "parameters.ratio", description: "must be of type number, not string" },
      { field: "parameters.debug", description: "must be of type boolean, not null" },
      { field: "parameters.hosts", description: "must be of type list, not object" },
      { field: "parameters.labels", description: "must be of type object, not list" },
    ]);
  });
});

describe("parameters that no program takes", () => {
  const program = parseProgramDeclaration(
    "engine: manifests\ndescription: x\nparameters: { a: { type: object }, constructor: { type: string, required: true } }\n",
  );
  const violations = (given: JsonObject) => resolveParameters(program, given).violations;
  const parsed = (text: string) => parsedJsonObject.parse(JSON.parse(text));

  test("hold a member called __proto__, at any depth", () => {
    const description = "holds a member called __proto__, which is not allowed";
    const inside = parsed('{ "constructor": "x", "a": { "b": [{ "__proto__": { "c": 1 } }] } }');
    expect(violations(inside)).toEqual([{ field: "parameters.a", description }]);
    expect(violations(parsed('{ "constructor": "x", "__proto__": 1 }'))).toEqual([
      { field: "parameters.__proto__", description: "is no name of a parameter" },
    ]);
  });

  test("are not taken for members that every object has", () => {
    expect(violations({})).toEqual([{ field: "parameters.constructor", description: "is required" }]);
  });

  test("are nested so deep that nothing could follow them", () => {
    const deep = `${"[".repeat(5000)}${"]".repeat(5000)}`;
    expect(violations(parsed(`{ "a": ${deep} }`))).toEqual([
      { field: "parameters.a", description: "is nested more than 32 deep" },
    ]);
  });
});

describe("program.yaml", () => {
  test.each([
    ["engine: ansible\ndescription: x", /program\.yaml: engine: /],
    ["engine: manifests", /program\.yaml: description: /],
    ["engine: manifests\ndescription: x\nextra: 1", /program\.yaml: \(root\): .*extra/],
    ["engine: manifests\ndescription: x\nparameters: { a: { type: text } }", /program\.yaml: parameters\.a\.type: /],
    ["engine: terraform\ndescription: x\noutputs: { a: 1 }", /program\.yaml: outputs: a terraform program declares/],
    ["a: [", /program\.yaml: not YAML: /],
    [
      "engine: manifests\ndescription: x\nparameters: { a: { type: integer, default: 1.5 } }",
      /parameters\.a\.default: must be of type integer, not number/,
    ],
    [
      "engine: manifests\ndescription: x\noutputs: { a: .nan }",
      /program\.yaml: holds NaN, which is no number that JSON has/,
    ],
    [
      `engine: manifests\ndescription: x\noutputs: { a: ${"[".repeat(40)}${"]".repeat(40)} }`,
      /program\.yaml: is nested more than 32 deep/,
    ],
    [`engine: manifests\ndescription: ${"[".repeat(20_000)}`, /program\.yaml: /],
    [`engine: manifests\ndescription: x\n#${"x".repeat(64 * 1024)}`, /program\.yaml: is larger than 65536 bytes/],
  ])("%j is refused by its field", (text, message) => {
    expect(() => parseProgramDeclaration(text)).toThrow(message);
  });
});

test("canonical JSON is one text for one value, whatever the order of its keys", () => {
  expect(canonicalJson({ b: [1, { d: null, c: "x" }], a: 1.5 })).toBe('{"a":1.5,"b":[1,{"c":"x","d":null}]}');
  expect(canonicalJson({ a: 1.5, b: [1, { c: "x", d: null }] })).toBe('{"a":1.5,"b":[1,{"c":"x","d":null}]}');
});
