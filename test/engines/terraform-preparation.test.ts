import { rememberedPreparations } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-preparation";
import type { EngineEvent } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { approved, openBench, planned, play, type EngineBench } from "./engine-bench.ts";

let bench: EngineBench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(() => bench.close());

describe("a program that is planned again", () => {
  test("is not prepared again, in whatever environment, and is planned and applied as before", async () => {
    const program = await bench.writeProgram("own", {
      "program.yaml": "engine: terraform\ndescription: One.\nparameters:\n  name: { type: string, required: true }\n",
      "main.tf": 'variable "name" { type = string }\nresource "terraform_data" "one" { input = var.name }\n',
    });
    const first = await planAndApply(program, { name: "first" });
    expect(first.plan.events.some(isInitializing)).toBe(true);

    const second = await planAndApply(program, { name: "second" });
    expect(second.plan.events.some(isInitializing)).toBe(false);
    expect(planned(second.plan.outcome).summary).toEqual(planned(first.plan.outcome).summary);
    expect([first, second].map(({ outcome }) => outcome.result)).toEqual(["applied", "applied"]);

    const again = await play(bench.engines.terraform.plan({ ...second.job, mode: "APPLY" }));
    expect(again.events.some(isInitializing)).toBe(false);
    expect(planned(again.outcome)).toMatchObject({ noChanges: true, state: { serial: 1 } });
  });

  test("is prepared each time when it has modules to bring in", async () => {
    const program = await bench.writeProgram("modular", {
      "program.yaml": "engine: terraform\ndescription: One in a module.\n",
      "main.tf": 'module "inner" { source = "./inner" }\n',
      "inner/main.tf": 'resource "terraform_data" "one" {}\n',
    });
    for (const round of ["first", "second"]) {
      const { plan, outcome } = await planAndApply(program, {});
      expect([round, plan.events.some(isInitializing), outcome.result]).toEqual([round, true, "applied"]);
    }
  });
});

describe("what is remembered of a preparation", () => {
  const RECORD = {
    version: 3,
    terraform_version: "1.11.4",
    backend: { type: "http", config: { address: null, password: null }, hash: 1 },
  };
  const EMPTY = { identity: { lineage: "", serial: 0 }, text: "" };

  test("serves only where the state wants no provider that the program doesn't", () => {
    const preparations = rememberedPreparations();
    preparations.remember("sha256:1", JSON.stringify(RECORD));
    expect(preparations.of("sha256:1", EMPTY)).toBe(JSON.stringify(RECORD));
    expect(preparations.of("sha256:2", EMPTY)).toBeUndefined();
    const stateOf = (...providers: string[]) => ({
      ...EMPTY,
      text: JSON.stringify({ resources: providers.map((provider) => ({ provider })) }, null, 2),
    });
    const builtIn = 'provider["terraform.io/builtin/terraform"]';
    expect(preparations.of("sha256:1", stateOf(builtIn, `module.a.${builtIn}`))).toBeDefined();
    expect(preparations.of("sha256:1", stateOf(builtIn, 'provider["registry.terraform.io/a/b"]'))).toBeUndefined();
  });

  test.each([
    [
      "leads to another backend",
      { ...RECORD, backend: { ...RECORD.backend, config: { address: "http://elsewhere" } } },
    ],
    ["is of another kind of backend", { ...RECORD, backend: { ...RECORD.backend, type: "local" } }],
    ["says more than it should", { ...RECORD, remote: {} }],
    ["is no record", "nothing"],
  ])("is nothing when it %s", (_what, record) => {
    const preparations = rememberedPreparations();
    preparations.remember("sha256:1", JSON.stringify(record));
    preparations.remember("sha256:2", undefined);
    preparations.remember("sha256:3", "{");
    expect(["sha256:1", "sha256:2", "sha256:3"].map((digest) => preparations.of(digest, EMPTY))).toEqual(
      Array(3).fill(undefined),
    );
  });
});

async function planAndApply(program: string, parameters: { name?: string }) {
  const job = await (await bench.environment()).job(program, parameters);
  const plan = await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }));
  const { outcome } = await play(bench.engines.terraform.apply({ ...job, ...approved(planned(plan.outcome)) }));
  return { job, plan, outcome };
}

function isInitializing(event: EngineEvent): boolean {
  return event.type === "log" && event.line.includes("Initializing");
}
