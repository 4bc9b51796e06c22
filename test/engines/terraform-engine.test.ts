import { until } from "@runtime-cloud/local-servers/until";
import type { EngineJob } from "@runtime-cloud/iac-provisioning/engines/engine";
import type { EngineEvent } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import { lockState, readState, unlockState, writeState } from "@runtime-cloud/iac-provisioning/engines/state-client";
import { terraformEngine } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-engine";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";

import { approved, NEVER, openBench, outcomes, planned, play, type EngineBench } from "./engine-bench.ts";

let bench: EngineBench;
let slow: string;
beforeAll(async () => {
  bench = await openBench();
  slow = await bench.writeProgram("slow", {
    "program.yaml":
      "engine: terraform\ndescription: Takes long.\nparameters:\n  pid_file: { type: string, required: true }\n",
    "main.tf": `
      variable "pid_file" { type = string }
      resource "terraform_data" "first" { input = "first" }
      resource "terraform_data" "second" {
        input = terraform_data.first.output
        provisioner "local-exec" {
          command = "sleep 300 & echo $! > \${var.pid_file}; echo sleeping; wait"
        }
      }
      resource "terraform_data" "third" { input = terraform_data.second.output }
    `,
  });
});
afterAll(async () => {
  expect(await readdir(path.join(bench.directory, "work"))).toEqual([]);
  await bench.close();
});

test("an engine killed with -9 leaves INDETERMINATE what it was at, and no process alive", async () => {
  const run = await startSlow(NEVER);
  const { events, outcome } = await play(run.apply(), async (event) => {
    if (isSleeping(event)) process.kill(-(await processGroup(await run.sleeper())), "SIGKILL");
  });

  expect(outcome).toMatchObject({ result: "indeterminate", failure: { code: "KILLED" } });
  expect(outcomes(run.plan.changes, events)).toEqual({
    "terraform_data.first": "APPLIED",
    "terraform_data.second": "INDETERMINATE",
    "terraform_data.third": "NOT_ATTEMPTED",
  });
  await expectDead(await run.sleeper());
});

test("the kill signal ends the whole process group", async () => {
  const kill = new AbortController();
  const run = await startSlow({ ...NEVER, kill: kill.signal });
  const { outcome } = await play(run.apply(), (event) => {
    if (isSleeping(event)) kill.abort();
  });
  expect(outcome).toMatchObject({ result: "indeterminate", failure: { code: "KILLED" } });
  await expectDead(await run.sleeper());
});

test("an interrupt lets the engine record what it did, and leaves no process alive", async () => {
  const interrupt = new AbortController();
  const run = await startSlow({ ...NEVER, interrupt: interrupt.signal });
  const { events, outcome } = await play(run.apply(), (event) => {
    if (isSleeping(event)) interrupt.abort();
  });

  expect(outcome).toMatchObject({ result: "partially-applied", failure: { code: "INTERRUPTED" } });
  expect(outcomes(run.plan.changes, events)).toEqual({
    "terraform_data.first": "APPLIED",
    "terraform_data.second": "FAILED",
    "terraform_data.third": "NOT_ATTEMPTED",
  });
  expect((await readState(run.job.state)).text).toContain('"first"');
  await expectDead(await run.sleeper());
});

test("leaving the events early stops the engine and removes its work directory", async () => {
  const run = await startSlow(NEVER);
  for await (const event of run.apply()) if (isSleeping(event)) break;
  await expectDead(await run.sleeper());
  expect(await readdir(path.join(bench.directory, "work"))).toEqual([]);
});

test("what this process has in its environment does not reach the engine", async () => {
  process.env["TF_CLI_ARGS_plan"] = "-destroy";
  process.env["TF_VAR_environment"] = "from-the-environment";
  try {
    const job = await (await bench.environment()).job("environment-baseline@1.0.0", { environment: "staging" });
    const plan = planned((await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }))).outcome);
    expect(plan.summary).toEqual({ adds: 4, changes: 0, deletes: 0, replaces: 0 });
    expect(JSON.stringify(plan.changes)).not.toContain("from-the-environment");
  } finally {
    delete process.env["TF_CLI_ARGS_plan"];
    delete process.env["TF_VAR_environment"];
  }
});

test("drift is what the applied specification would change, attribute by attribute", async () => {
  const environment = await bench.environment();
  const parameters = { environment: "staging" };
  const job = await environment.job("environment-baseline@1.0.0", parameters);
  const plan = planned((await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }))).outcome);
  await play(bench.engines.terraform.apply({ ...job, ...approved(plan) }));
  await tamperWithState(job, (text) => text.replace('"staging-registry"', '"another-registry"'));

  const { outcome } = await play(
    bench.engines.terraform.drift(await environment.job("environment-baseline@1.0.0", parameters)),
  );
  if (outcome.result !== "observed") throw new Error(outcome.failure.message);
  expect(outcome.drift).toEqual([
    {
      address: "terraform_data.registry",
      resourceType: "terraform_data",
      kind: "ATTRIBUTE_CHANGED",
      attributePath: "input.name",
      before: "staging-registry",
      after: "another-registry",
    },
  ]);
  expect(outcome.resources.map(({ address }) => address)).toContain('terraform_data.subnet["a"]');
});

test("a replacement is destructive, counts once, and takes two steps to be APPLIED", async () => {
  const environment = await bench.environment();
  const first = await environment.job("environment-baseline@1.0.0", { environment: "staging", region: "north" });
  const made = planned((await play(bench.engines.terraform.plan({ ...first, mode: "APPLY" }))).outcome);
  await play(bench.engines.terraform.apply({ ...first, ...approved(made) }));

  const second = await environment.job("environment-baseline@1.0.0", { environment: "staging", region: "south" });
  const plan = planned((await play(bench.engines.terraform.plan({ ...second, mode: "APPLY" }))).outcome);
  expect(plan).toMatchObject({ destructive: true, summary: { adds: 0, changes: 2, deletes: 0, replaces: 1 } });
  expect(plan.changes.find(({ address }) => address === "terraform_data.network")).toMatchObject({
    actions: ["delete", "create"],
    before: { input: { region: "north" } },
    after: { id: "(known after apply)", input: { region: "south" } },
  });
  const { events } = await play(bench.engines.terraform.apply({ ...second, ...approved(plan) }));
  expect(outcomes(plan.changes, events)["terraform_data.network"]).toBe("APPLIED");
});

test("a worker pool's outputs tell its size and generation, which is what the capacity service waits for", async () => {
  const job = await (await bench.environment()).job("worker-pool@1.0.0", { pool_id: "pool-1", size: 3, generation: 7 });
  const plan = planned((await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }))).outcome);
  const { outcome } = await play(bench.engines.terraform.apply({ ...job, ...approved(plan) }));
  expect(outcome).toMatchObject({
    result: "applied",
    outputs: { pools: [{ poolId: "pool-1", size: 3, generation: 7 }] },
  });
});

test("a parameter that the program refuses is INVALID_INPUT, with its own words", async () => {
  const job = await (
    await bench.environment()
  ).job("environment-baseline@1.0.0", { environment: "x", environment_class: "MOON" });
  const { outcome } = await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }));
  expect(outcome).toMatchObject({ result: "failed", failure: { code: "INVALID_INPUT" } });
  expect(JSON.stringify(outcome)).toContain("environment_class must be DEVELOPMENT");
});

test("a program cannot bring files that win over its parameters or its state", async () => {
  const program = await bench.writeProgram("overriding", {
    "program.yaml": "engine: terraform\ndescription: Brings its own backend.\n",
    "z_override.tf": 'terraform {\n  backend "local" {}\n}\n',
  });
  const job = await (await bench.environment()).job(program, {});
  const { outcome } = await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }));
  expect(outcome).toMatchObject({ result: "failed", failure: { code: "INVALID_PROGRAM" } });
  expect(JSON.stringify(outcome)).toContain("z_override.tf");
});

test("without a binary it says what to install", async () => {
  const engine = terraformEngine({ searchPath: bench.directory, extraEnvironment: {} });
  await expect(engine.version()).rejects.toThrow(/no tofu or terraform on the PATH: install OpenTofu/);
  const job = await (await bench.environment()).job("environment-baseline@1.0.0", { environment: "x" });
  const { outcome } = await play(engine.plan({ ...job, mode: "APPLY" }));
  expect(outcome).toMatchObject({ result: "failed", failure: { code: "ENGINE_UNAVAILABLE" } });

  const misled = terraformEngine({ binary: "/nowhere/tofu", searchPath: "", extraEnvironment: {} });
  await expect(misled.version()).rejects.toThrow(/IAC_ENGINE_BIN names \/nowhere\/tofu/);
});

test("it tells which of the two CLIs it is", async () => {
  await expect(bench.engines.terraform.version()).resolves.toMatchObject({
    product: expect.stringMatching(/^(terraform|opentofu)$/),
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
  });
});

async function startSlow(signals: EngineJob["signals"]) {
  const environment = await bench.environment();
  const pidFile = path.join(bench.directory, `${environment.key.environmentId}.pid`);
  const job = await environment.job(slow, { pid_file: pidFile }, signals);
  const plan = planned((await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }))).outcome);
  return {
    job,
    plan,
    apply: () => bench.engines.terraform.apply({ ...job, ...approved(plan) }),
    sleeper: async () => Number(await readFile(pidFile, "utf8")),
  };
}

function isSleeping(event: EngineEvent): boolean {
  return event.type === "log" && event.line.endsWith("sleeping");
}

async function tamperWithState({ state }: EngineJob, change: (text: string) => string): Promise<void> {
  const { identity, text } = await readState(state);
  const next = change(text.replace(`"serial": ${identity.serial}`, `"serial": ${identity.serial + 1}`));
  await lockState(state, "tampering", "test");
  await writeState(state, "tampering", next);
  await unlockState(state, "tampering", "test");
}

/** The fifth field of its stat; the command's name, in parentheses, may hold spaces. */
async function processGroup(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
}

/** A killed process dies when it is scheduled next, and may then show as a zombie until whoever adopted it looks. */
async function expectDead(pid: number): Promise<void> {
  await until(`process ${pid} to be dead`, DEAD_WITHIN_MS, async () => {
    const state = await readFile(`/proc/${pid}/stat`, "utf8").then(
      (stat) => stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3),
      () => "gone",
    );
    return ["gone", "Z", "X"].includes(state) || undefined;
  });
}

const DEAD_WITHIN_MS = 5_000;
