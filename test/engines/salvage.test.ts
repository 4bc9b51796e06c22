import type { Rescue, StateAccess } from "@runtime-cloud/iac-provisioning/engines/engine";
import { stateInventory } from "@runtime-cloud/iac-provisioning/engines/state-inventory";
import { lockState, unlockState, writeState } from "@runtime-cloud/iac-provisioning/engines/state-client";
import { terraformEngine } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-engine";
import { completeState } from "@runtime-cloud/iac-provisioning/state/complete-state";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { readdir } from "node:fs/promises";
import path from "node:path";

import { refuseStates } from "../_support/refused-states.ts";
import { approved, type EngineBench, openBench, outcomes, planned, play } from "./engine-bench.ts";

const KEPT: Rescue = { result: "kept", reason: "it is kept in a drawer" };

/** The CLI would try three times to send a state, with pauses. */
const terraform = terraformEngine({
  searchPath: process.env["PATH"] ?? "",
  extraEnvironment: { TF_HTTP_RETRY_MAX: "0" },
});

let bench: EngineBench;
let accept: () => Promise<void>;
beforeAll(async () => {
  bench = await openBench();
  await bench.writeProgram("two", {
    "program.yaml": "engine: terraform\ndescription: Two resources.\n",
    "main.tf": `
      resource "terraform_data" "one" { input = "one" }
      resource "terraform_data" "two" { input = terraform_data.one.output }
      output "two" { value = terraform_data.two.output }
    `,
  });
  await bench.writeProgram("walled", {
    "program.yaml": "engine: terraform\ndescription: Has something in the place of the file for its state.\n",
    "main.tf": `
      resource "terraform_data" "one" {
        provisioner "local-exec" { command = "mkdir errored.tfstate" }
      }
    `,
  });
  await bench.writeProgram("linked", {
    "program.yaml": "engine: terraform\ndescription: Has a link in the place of the file for its state.\n",
    "main.tf": `
      resource "terraform_data" "one" {
        provisioner "local-exec" { command = "touch other && ln -s other errored.tfstate" }
      }
    `,
  });
  await bench.writeProgram("half", {
    "program.yaml": "engine: terraform\ndescription: Fails after its first resource.\n",
    "main.tf": `
      resource "terraform_data" "one" { input = "one" }
      resource "terraform_data" "two" {
        input = terraform_data.one.output
        provisioner "local-exec" { command = "exit 3" }
      }
      resource "terraform_data" "three" { input = terraform_data.two.output }
    `,
  });
});
beforeEach(async () => {
  accept = await refuseStates(bench.pool, "everybody's");
});
afterEach(() => accept());
afterAll(async () => {
  expect(await readdir(path.join(bench.directory, "work"))).toEqual([]);
  await bench.close();
});

test("an apply whose state is rescued and recorded has applied, with its outputs", async () => {
  const { plan, events, outcome } = await applied("two@1.0.0", record);
  expect(outcome).toMatchObject({ result: "applied", outputs: { two: "one" } });
  expect(outcomes(plan.changes, events)).toEqual({ "terraform_data.one": "APPLIED", "terraform_data.two": "APPLIED" });
});

test("an apply that failed, and whose state is rescued and recorded, ends partially applied for its own reason", async () => {
  const { plan, events, outcome } = await applied("half@1.0.0", record);
  expect(outcomes(plan.changes, events)).toEqual({
    "terraform_data.one": "APPLIED",
    "terraform_data.two": "FAILED",
    "terraform_data.three": "NOT_ATTEMPTED",
  });
  expect(outcome).toMatchObject({
    result: "partially-applied",
    failure: { code: "ENGINE_ERROR", address: "terraform_data.two" },
  });
});

test("a state that is kept apart leaves the apply indeterminate, and says why", async () => {
  const { rescued, outcome } = await applied("two@1.0.0", () => Promise.resolve(KEPT));
  expect(outcome).toMatchObject({
    result: "indeterminate",
    failure: { code: "STATE_PERSIST_FAILED", message: expect.stringContaining(KEPT.reason) },
  });
  expect(rescued.map(addressesIn)).toEqual([["terraform_data.one", "terraform_data.two"]]);
});

test("a state that the engine can only print is rescued too, and shows in no event", async () => {
  const { rescued, outcome, events } = await applied("walled@1.0.0", () => Promise.resolve(KEPT));
  expect(outcome).toMatchObject({ result: "indeterminate", failure: { code: "STATE_PERSIST_FAILED" } });
  expect(rescued.map(addressesIn)).toEqual([["terraform_data.one"]]);
  expect(JSON.stringify(events)).not.toContain("lineage");
});

test("a link in the place of the state's file is not followed, and the state is said to be lost", async () => {
  const { rescued, outcome } = await applied("linked@1.0.0", () => Promise.resolve(KEPT));
  expect(rescued).toEqual([]);
  expect(outcome).toMatchObject({
    result: "indeterminate",
    failure: { code: "STATE_PERSIST_FAILED", message: expect.stringContaining("it is lost") },
  });
});

test("manifests whose record is rescued are applied, and those whose record isn't are indeterminate", async () => {
  const parameters = { name: "shop", environment: "e1", version: "1.2.3" };
  const recorded = await applied("web-service@1.0.0", record, parameters);
  expect(recorded.outcome.result).toBe("applied");
  accept = await refuseStates(bench.pool, "everybody's");
  const kept = await applied("web-service@1.0.0", () => Promise.resolve(KEPT), parameters);
  expect(kept.outcome).toMatchObject({ result: "indeterminate", failure: { code: "STATE_PERSIST_FAILED" } });
  expect(JSON.parse(kept.rescued[0] ?? "")).toMatchObject({
    serial: 1,
    files: { "deployment.yaml": expect.any(String) },
  });
});

test("a state without a history gets one, and nothing else of its text changes", () => {
  const text =
    '{\n  "serial": 0,\n  "lineage": "",\n  "n": 12345678901234567890, "a": { "lineage": "", "serial": 0 }\n}';
  expect(completeState(Buffer.from(text), () => "new").toString()).toBe(
    '{\n  "serial": 1,\n  "lineage": "new",\n  "n": 12345678901234567890, "a": { "lineage": "", "serial": 0 }\n}',
  );
  const whole = Buffer.from('{"serial":4,"lineage":"x","a":{"lineage":"","serial":0}}');
  expect(completeState(whole, () => "new")).toBe(whole);
});

/** Plans and applies in a new environment; what is rescued goes to `rescue`. */
async function applied(
  program: string,
  rescue: (state: string, access: StateAccess) => Promise<Rescue>,
  parameters: Record<string, string> = {},
) {
  const job = await (await bench.environment()).job(program, parameters);
  const engine = program.startsWith("web-service") ? bench.engines.manifests : terraform;
  const plan = planned((await play(engine.plan({ ...job, mode: "APPLY" }))).outcome);
  const rescued: string[] = [];
  const rescueState = (state: string) => {
    rescued.push(state);
    return rescue(state, job.state);
  };
  return { plan, rescued, ...(await play(engine.apply({ ...job, ...approved(plan), rescueState }))) };
}

/** The database accepts it now. */
async function record(state: string, access: StateAccess): Promise<Rescue> {
  await accept();
  accept = () => Promise.resolve();
  const isLocked = await lockState(access, "rescue", "test").then(
    () => false,
    () => true,
  );
  if (isLocked) {
    await bench.pool.query("UPDATE engine_state SET lock_id = NULL WHERE lock_run_id = $1", [access.username]);
    await lockState(access, "rescue", "test");
  }
  await writeState(access, "rescue", state);
  await unlockState(access, "rescue", "test");
  return { result: "recorded" };
}

function addressesIn(state: string): readonly string[] {
  return stateInventory("terraform", state).addresses;
}
