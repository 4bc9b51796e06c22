import type { Planned } from "@runtime-cloud/iac-provisioning/engines/engine";
import { lockState, unlockState, writeState } from "@runtime-cloud/iac-provisioning/engines/state-client";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { mkdir, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";

import {
  approved,
  openBench,
  outcomes,
  planned,
  play,
  type BenchEnvironment,
  type EngineBench,
} from "./engine-bench.ts";

const WEB_SERVICE = "web-service@1.0.0";
const parameters = { name: "shop", environment: "staging", version: "1.4.2", replicas: 3, settings: { MODE: "fast" } };

let bench: EngineBench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(() => bench.close());

test("parameters keep their types, and components are its outputs", async () => {
  const environment = await bench.environment();
  expect((await apply(environment, parameters)).outcome).toMatchObject({
    result: "applied",
    outputs: { components: [{ name: "shop", version: "1.4.2", replicas: 3 }] },
  });
  const deployment = await readFile(path.join(environment.targetDirectory, "deployment.yaml"), "utf8");
  expect(deployment).toContain("replicas: 3\n");
  expect(deployment).toContain("image: registry.local/app:1.4.2\n");
  expect(await readFile(path.join(environment.targetDirectory, "configmap.yaml"), "utf8")).toContain(
    "data:\n  MODE: fast\n",
  );
});

test("an edit, a deletion and a file of someone else's are drift, and the next run puts right what is its own", async () => {
  const environment = await bench.environment();
  await apply(environment, parameters);
  const file = (name: string) => path.join(environment.targetDirectory, name);
  const deployment = await readFile(file("deployment.yaml"), "utf8");
  await writeFile(file("deployment.yaml"), `# by hand\n${deployment.replace("replicas: 3", "replicas: 9")}`);
  await rm(file("service.yaml"));
  await writeFile(file("extra.yaml"), "kind: Job\nmetadata: { name: mine }\n");

  const { outcome } = await play(bench.engines.manifests.drift(await environment.job(WEB_SERVICE, parameters)));
  expect(outcome).toMatchObject({
    result: "observed",
    drift: [
      { address: "deployment.yaml", kind: "ATTRIBUTE_CHANGED", attributePath: "spec.replicas", before: 3, after: 9 },
      { address: "service.yaml", kind: "RESOURCE_MISSING", resourceType: "Service", attributePath: "", after: null },
      { address: "extra.yaml", kind: "RESOURCE_UNMANAGED", before: null, after: { kind: "Job", name: "mine" } },
    ],
  });

  const repaired = await apply(environment, parameters);
  expect(repaired.plan).toMatchObject({
    summary: { adds: 1, changes: 1, deletes: 0, replaces: 0 },
    destructive: false,
  });
  expect(outcomes(repaired.plan.changes, repaired.events)).toMatchObject({
    "deployment.yaml": "APPLIED",
    "service.yaml": "APPLIED",
    "namespace.yaml": "NO_OP",
  });
  expect(await readFile(file("deployment.yaml"), "utf8")).toBe(deployment);
  expect((await readdir(environment.targetDirectory)).sort()).toContain("extra.yaml");
});

test("losing the whole directory reads as every file missing", async () => {
  const environment = await bench.environment();
  await apply(environment, parameters);
  await rm(environment.targetDirectory, { recursive: true });
  const { outcome } = await play(bench.engines.manifests.drift(await environment.job(WEB_SERVICE, parameters)));
  if (outcome.result !== "observed") throw new Error(outcome.failure.message);
  expect(outcome.drift.map(({ kind }) => kind)).toEqual(Array(4).fill("RESOURCE_MISSING"));
});

test("a change of comments or format is no drift and no change", async () => {
  const environment = await bench.environment();
  await apply(environment, parameters);
  await writeFile(
    path.join(environment.targetDirectory, "namespace.yaml"),
    '# ours\n{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "staging"}}\n',
  );
  const { outcome } = await play(bench.engines.manifests.drift(await environment.job(WEB_SERVICE, parameters)));
  expect(outcome).toMatchObject({ result: "observed", drift: [] });
  expect(await plan(environment, parameters)).toMatchObject({ noChanges: true });
});

test("a file that changed between plan and apply makes the plan stale", async () => {
  const environment = await bench.environment();
  await apply(environment, parameters);
  const job = await environment.job(WEB_SERVICE, { ...parameters, replicas: 5 });
  const next = planned((await play(bench.engines.manifests.plan({ ...job, mode: "APPLY" }))).outcome);
  await writeFile(path.join(environment.targetDirectory, "deployment.yaml"), "kind: Deployment\n");

  const { outcome, events } = await play(bench.engines.manifests.apply({ ...job, ...approved(next) }));
  expect(outcome).toMatchObject({ result: "failed", failure: { code: "STALE_PLAN" } });
  expect(outcome.failure?.message).toContain("deployment.yaml");
  expect(events).toEqual([]);
});

test("an interrupt stops between two files and records those that were written", async () => {
  const environment = await bench.environment();
  const interrupt = new AbortController();
  const job = await environment.job(WEB_SERVICE, parameters);
  const first = planned((await play(bench.engines.manifests.plan({ ...job, mode: "APPLY" }))).outcome);
  const { outcome, events } = await play(
    bench.engines.manifests.apply({
      ...job,
      ...approved(first),
      signals: { ...job.signals, interrupt: interrupt.signal },
    }),
    ({ type }) => {
      if (type === "resource-applied") interrupt.abort();
    },
  );
  expect(outcome).toMatchObject({ result: "partially-applied", failure: { code: "INTERRUPTED" } });
  expect(Object.values(outcomes(first.changes, events))).toEqual([
    "APPLIED",
    "NOT_ATTEMPTED",
    "NOT_ATTEMPTED",
    "NOT_ATTEMPTED",
  ]);
  expect(await plan(environment, parameters)).toMatchObject({ summary: { adds: 3 }, state: { serial: 1 } });
});

test("an apply while another run holds the state's lock is refused as STATE_LOCKED", async () => {
  const environment = await bench.environment();
  const job = await environment.job(WEB_SERVICE, parameters);
  const first = planned((await play(bench.engines.manifests.plan({ ...job, mode: "APPLY" }))).outcome);
  await lockState((await environment.job(WEB_SERVICE, parameters)).state, "other", "test");
  const { outcome } = await play(bench.engines.manifests.apply({ ...job, ...approved(first) }));
  expect(outcome).toMatchObject({ result: "failed", failure: { code: "STATE_LOCKED" } });
});

test("what another engine applied is said to be in the way, and is left as it is", async () => {
  const environment = await bench.environment();
  const { state } = await environment.job(WEB_SERVICE, parameters);
  await lockState(state, "terraform", "test");
  await writeState(state, "terraform", JSON.stringify({ version: 4, lineage: randomUUID(), serial: 1, resources: [] }));
  await unlockState(state, "terraform", "test");
  const job = await environment.job(WEB_SERVICE, parameters);
  const { outcome } = await play(bench.engines.manifests.plan({ ...job, mode: "APPLY" }));
  const failure = { code: "STATE_REFUSED", message: expect.stringMatching(/another engine than manifests: tear down/) };
  expect(outcome).toMatchObject({ result: "failed", failure });
});

test("a link on the way does not lead a write out of the environment's directory", async () => {
  const outside = path.join(bench.directory, "outside");
  await mkdir(outside);
  const program = await bench.writeProgram("nested", {
    "program.yaml": "engine: manifests\ndescription: Nested.\n",
    "templates/apps/one.yaml": "kind: ConfigMap\n",
  });
  const environment = await bench.environment();
  await mkdir(environment.targetDirectory, { recursive: true });
  await symlink(outside, path.join(environment.targetDirectory, "apps"));
  const { outcome } = await apply(environment, {}, program);
  expect(outcome).toMatchObject({ result: "failed", failure: { address: "apps/one.yaml" } });
  expect(await readdir(outside)).toEqual([]);
});

test.each([
  ["an unknown parameter", "templates/a.yaml", "name: ${nmae}\n", /templates\/a\.yaml: \$\{nmae\} has no value.*name/],
  [
    "a list inside a text",
    "templates/a.yaml",
    "name: x-${list}\n",
    /templates\/a\.yaml: \$\{list\} .* must stand alone/,
  ],
  ["a path that leads out", "templates/${up}.yaml", "kind: A\n", /becomes "\.\.\/up\.yaml"/],
  ["a file that is no manifest", "templates/run.sh", "exit\n", /templates\/run\.sh: a template is/],
  ["broken YAML", "templates/a.yaml", "a: [", /templates\/a\.yaml: neither YAML nor JSON/],
])("refuses %s and names the file", async (_, file, content, message) => {
  const name = `bad-${Buffer.from(file + content)
    .toString("hex")
    .slice(0, 40)}`;
  const program = await bench.writeProgram(name, {
    "program.yaml":
      "engine: manifests\ndescription: Bad.\nparameters:\n  name: { type: string, default: n }\n  list: { type: list, default: [1] }\n  up: { type: string, default: ../up }\n",
    [file]: content,
  });
  const job = await (await bench.environment()).job(program, {});
  const { outcome } = await play(bench.engines.manifests.plan({ ...job, mode: "APPLY" }));
  expect(outcome).toMatchObject({ result: "failed", failure: { code: "INVALID_PROGRAM" } });
  if (outcome.result === "failed") expect(outcome.failure.message).toMatch(message);
});

async function plan(environment: BenchEnvironment, given: typeof parameters): Promise<Planned> {
  const job = await environment.job(WEB_SERVICE, given);
  return planned((await play(bench.engines.manifests.plan({ ...job, mode: "APPLY" }))).outcome);
}

async function apply(environment: BenchEnvironment, given: Partial<typeof parameters>, program = WEB_SERVICE) {
  const job = await environment.job(program, given);
  const made = planned((await play(bench.engines.manifests.plan({ ...job, mode: "APPLY" }))).outcome);
  return { plan: made, ...(await play(bench.engines.manifests.apply({ ...job, ...approved(made) }))) };
}
