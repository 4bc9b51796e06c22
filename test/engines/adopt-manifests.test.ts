import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { Adoption, AdoptionOutcome, ObservedValue } from "@runtime-cloud/iac-provisioning/engines/engine-adoption";
import type { JsonObject, JsonValue } from "@runtime-cloud/iac-provisioning/json/canonical-json";
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";

import { approved, type BenchEnvironment, type EngineBench, openBench, planned, play } from "./engine-bench.ts";

let bench: EngineBench;
let environment: BenchEnvironment;
let program: string;
beforeAll(async () => {
  bench = await openBench();
  program = await bench.writeProgram("adoptable", {
    "program.yaml": PROGRAM,
    "templates/${name}.yaml": TEMPLATE,
    "templates/pair.json": '{ "one": "${size}", "two": { "same": "${size}" }, "word": "fixed", "flags": [true] }',
  });
});
afterAll(() => bench.close());
beforeEach(async () => {
  environment = await bench.environment();
  const job = await environment.job(program, parameters);
  const plan = planned((await play(bench.engines.manifests.plan({ ...job, mode: "APPLY" }))).outcome);
  await play(bench.engines.manifests.apply({ ...job, ...approved(plan) }));
});

const PROGRAM = `
engine: manifests
description: Has a parameter in every kind of place.
parameters:
  name: { type: string, required: true }
  tag: { type: string, required: true }
  replicas: { type: integer, default: 2 }
  size: { type: integer, default: 1 }
  debug: { type: boolean, default: false }
  settings: { type: object, default: {} }
  hosts: { type: list, default: [] }
  token: { type: string, default: long-secret-value, sensitive: true }
outputs:
  components:
    - { name: "\${name}", version: "\${tag}", replicas: "\${replicas}" }
`;
const TEMPLATE = `
kind: Deployment
metadata: { name: "\${name}" }
spec:
  replicas: "\${replicas}"
  image: "registry.local/app:\${tag}"
  verbose: "debug=\${debug}"
  env: "\${settings}"
  hosts: "\${hosts}"
  auth: "Bearer \${token}"
`;
const parameters = { name: "web", tag: "1.2.3", settings: { MODE: "fast", LEVEL: 1 }, hosts: ["a", "b"] };

/** Edits a file of the environment by hand. */
async function edit(name: string, change: (text: string) => string) {
  const file = path.join(environment.targetDirectory, name);
  const text = await readFile(file, "utf8");
  const edited = change(text);
  expect(edited).not.toBe(text);
  await writeFile(file, edited);
}

const replaced = (from: string, to: string) => (text: string) => text.replace(from, to);
const value = (attributePath: string, observed: JsonValue, address = "web.yaml"): ObservedValue => ({
  address,
  attributePath,
  observed,
});

async function adopt(...values: ObservedValue[]): Promise<Adoption> {
  const outcome: AdoptionOutcome = await bench.engines.manifests.adopt(
    await environment.job(program, parameters),
    values,
  );
  if (outcome.result === "failed") throw new Error(outcome.failure.message);
  return outcome;
}

/** What a plan with the adopted parameters would still do. */
async function planWith(changed: JsonObject) {
  const job = await environment.job(program, { ...parameters, ...changed });
  return planned((await play(bench.engines.manifests.plan({ ...job, mode: "APPLY" }))).outcome).summary;
}

test.each<[string, string, string, ObservedValue, JsonObject]>([
  ["a whole scalar", "replicas: 2", "replicas: 9", value("spec.replicas", 9), { replicas: 9 }],
  ["a part of a text", "app:1.2.3", "app:2.0.0", value("spec.image", "registry.local/app:2.0.0"), { tag: "2.0.0" }],
  ["a boolean in a text", "debug=false", "debug=true", value("spec.verbose", "debug=true"), { debug: true }],
  [
    "a member of an object",
    "MODE: fast",
    "MODE: slow",
    value("spec.env.MODE", "slow"),
    { settings: { MODE: "slow", LEVEL: 1 } },
  ],
  [
    "a new member of an object",
    "MODE: fast",
    "MODE: fast\n    MORE: yes",
    value("spec.env.MORE", "yes"),
    { settings: { MODE: "fast", LEVEL: 1, MORE: "yes" } },
  ],
  ["a member that was taken out", "    MODE: fast\n", "", value("spec.env.MODE", null), { settings: { LEVEL: 1 } }],
  ["an element of a list", "- b", "- c", value("spec.hosts[1]", "c"), { hosts: ["a", "c"] }],
  ["an element that was taken out", "    - b\n", "", value("spec.hosts[1]", null), { hosts: ["a"] }],
])("%s becomes its parameter, and the next plan has nothing to do", async (_name, from, to, observed, changed) => {
  await edit("web.yaml", replaced(from, to));
  expect(await adopt(observed)).toEqual({ result: "adopted", parameters: changed, refusals: [] });
  expect(await planWith(changed)).toEqual({ adds: 0, changes: 0, deletes: 0, replaces: 0 });
});

test("several values are adopted together", async () => {
  await edit("web.yaml", (text) => text.replace("replicas: 2", "replicas: 9").replace("MODE: fast", "MODE: slow"));
  const { parameters: changed, refusals } = await adopt(value("spec.replicas", 9), value("spec.env.MODE", "slow"));
  expect(refusals).toEqual([]);
  expect(changed).toEqual({ replicas: 9, settings: { MODE: "slow", LEVEL: 1 } });
  expect(await planWith(changed)).toMatchObject({ changes: 0 });
});

test("two places that want one parameter to be different are both refused", async () => {
  await edit("pair.json", (text) => text.replace('"one": 1', '"one": 2').replace('"same": 1', '"same": 3'));
  const { refusals } = await adopt(value("one", 2, "pair.json"), value("two.same", 3, "pair.json"));
  expect(refusals.map(({ reason }) => reason)).toEqual(
    Array(2).fill("other drift wants parameter size to be different"),
  );
});

test("two places that want the same of one parameter are adopted, one alone isn't: the other would change", async () => {
  await edit("pair.json", (text) => text.replace('"one": 1', '"one": 2'));
  const alone = await adopt(value("one", 2, "pair.json"));
  expect(alone.refusals).toMatchObject([
    { attributePath: "one", reason: expect.stringContaining("parameter size is also at pair.json two.same") },
  ]);
  await edit("pair.json", (text) => text.replace('"same": 1', '"same": 2'));
  const both = await adopt(value("one", 2, "pair.json"), value("two.same", 2, "pair.json"));
  expect(both).toEqual({ result: "adopted", parameters: { size: 2 }, refusals: [] });
});

test.each<[string, (text: string) => string, ObservedValue, RegExp]>([
  [
    "what the program says word for word",
    replaced("fixed", "other"),
    value("word", "other", "pair.json"),
    /give the program a parameter/,
  ],
  [
    "what the program has no place for",
    replaced('"word"', '"added": 1, "word"'),
    value("added", 1, "pair.json"),
    /templates\/pair.json has nothing at added/,
  ],
  [
    "another type",
    replaced('"one": 1', '"one": "many"'),
    value("one", "many", "pair.json"),
    /is of type integer, and string was/,
  ],
  [
    "what is not as it was seen",
    replaced("fixed", "other"),
    value("word", "third", "pair.json"),
    /observe the environment again/,
  ],
  ["what has not drifted", replaced("fixed", "other"), value("one", 1, "pair.json"), /nothing to adopt/],
  ["a masked value", replaced("fixed", "other"), value("word", "(sensitive value)", "pair.json"), /sensitive/],
  ["a whole resource", replaced("fixed", "other"), value("", null, "pair.json"), /no value to adopt: revert it/],
  ["no path", replaced("fixed", "other"), value("word..", "other", "pair.json"), /is no path/],
])("%s can't be adopted, and the refusal says why", async (_name, change, observed, reason) => {
  await edit("pair.json", change);
  const { refusals } = await adopt(observed);
  expect(refusals).toEqual([
    { address: observed.address, attributePath: observed.attributePath, reason: expect.stringMatching(reason) },
  ]);
});

test("a text that doesn't fit its template can't be adopted", async () => {
  await edit("web.yaml", replaced("registry.local/app:1.2.3", "elsewhere/app:1.2.3"));
  const { refusals } = await adopt(value("spec.image", "elsewhere/app:1.2.3"));
  expect(refusals[0]?.reason).toContain('writes "registry.local/app:${tag}" there, and no one parameter makes that');
});

test("a file that is missing is refused with what to do", async () => {
  await rm(path.join(environment.targetDirectory, "pair.json"));
  const { refusals } = await adopt(value("one", 2, "pair.json"));
  expect(refusals).toHaveLength(1);
});

test("what an observer sees of a component becomes the parameter of its output", async () => {
  const { parameters: changed, refusals } = await adopt(
    value("replicas", 5, "component/web"),
    value("version", "1.3.0", "component/web"),
  );
  expect({ changed, refusals }).toEqual({ changed: { replicas: 5, tag: "1.3.0" }, refusals: [] });
  const unknown = await adopt(value("replicas", 5, "component/other"));
  expect(unknown.refusals[0]?.reason).toBe("the program's components output has no other");
});
