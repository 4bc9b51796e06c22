import { afterAll, beforeAll, expect, test } from "@jest/globals";

import { approved, openBench, planned, play, type EngineBench } from "./engine-bench.ts";

let bench: EngineBench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(() => bench.close());

test("an output that is another one with every plan is no drift, and stays as it was applied", async () => {
  const program = await bench.writeProgram("restless", {
    "program.yaml": "engine: terraform\ndescription: Its outputs always differ.\n",
    "main.tf": `
      resource "terraform_data" "app" { input = "1.4.0" }
      output "counted" { value = length([1, 2]) }
      output "now" { value = timestamp() }
      output "components" { value = [{ name = "shop", version = timestamp() }] }
    `,
  });
  const environment = await bench.environment();
  const job = await environment.job(program, {});
  const plan = planned((await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }))).outcome);
  const { outcome: applied } = await play(bench.engines.terraform.apply({ ...job, ...approved(plan) }));
  if (applied.result !== "applied") throw new Error(applied.result);

  const looks = [await environment.job(program, {}), await environment.job(program, {})];
  for (const look of looks) {
    const { outcome } = await play(bench.engines.terraform.drift(look));
    expect(outcome).toMatchObject({ result: "observed", drift: [], outputs: applied.outputs });
  }
});
