import type { JsonObject } from "@runtime-cloud/iac-provisioning/json/canonical-json";
import { afterAll, beforeAll, expect, test } from "@jest/globals";

import { approved, openBench, planned, play, type EngineBench } from "./engine-bench.ts";

let bench: EngineBench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(() => bench.close());

test.each([
  [
    "an argument that a resource has not",
    'resource "terraform_data" "a" {\n  input = 1\n  colour = "red"\n}\n',
    /^main\.tf line 3: Unsupported argument: An argument named "colour" is not expected here/,
  ],
  [
    "a block that is never closed",
    'resource "terraform_data" "a" {\n',
    /^main\.tf line 1: Unclosed configuration block: /,
  ],
  [
    "a name that is declared nowhere",
    'resource "terraform_data" "a" {\n  input = local.nowhere\n}\n',
    /^main\.tf line 2: Reference to undeclared local value: /,
  ],
])("%s is INVALID_PROGRAM, with file and line", async (_, main, message) => {
  const { failure } = await planning({ "main.tf": main });
  expect(failure).toMatchObject({ code: "INVALID_PROGRAM", message: expect.stringMatching(message) });
});

test("a fault in a module is told by its path in the program", async () => {
  const { failure } = await planning({
    "main.tf": 'module "net" {\n  source = "./modules/net"\n}\n',
    "modules/net/net.tf": '\n\noutput "a" {\n  value = var.nowhere\n}\n',
  });
  expect(failure.code).toBe("INVALID_PROGRAM");
  expect(failure.message).toMatch(/^modules\/net\/net\.tf line 4: Reference to undeclared input variable/);
});

test("an input that the program wants and does not get is INVALID_INPUT, by its name", async () => {
  const { failure } = await planning({ "main.tf": 'variable "size" {\n  type = number\n}\n' });
  expect(failure).toMatchObject({
    code: "INVALID_INPUT",
    message: expect.stringMatching(/^main\.tf line 1: .*"size".*: take it as a parameter in program\.yaml, or give/),
  });
  expect(failure.message).not.toContain("-var");
});

test("an input of another type than the variable has is INVALID_INPUT, by the variable's place", async () => {
  const parameters = "parameters:\n  size: { type: string, required: true }\n";
  const { failure } = await planning(
    {
      "program.yaml": `engine: terraform\ndescription: Fails.\n${parameters}`,
      "main.tf": '\nvariable "size" {\n  type = number\n}\n',
    },
    { size: "large" },
  );
  expect(failure.code).toBe("INVALID_INPUT");
  expect(failure.message).toMatch(/^main\.tf line 2: .*var\.size.*a number is required/);
  expect(failure.message).not.toContain("tfvars");
});

test("a provider that cannot be had is PROVIDER_UNAVAILABLE, by its name and with the way out", async () => {
  const { failure } = await planning({
    "main.tf":
      'terraform {\n  required_providers {\n    nope = { source = "registry.invalid/acme/nope" }\n  }\n}\nresource "nope_thing" "a" {}\n',
  });
  expect(failure.code).toBe("PROVIDER_UNAVAILABLE");
  expect(failure.message).toContain("let the engine reach the registry of registry.invalid/acme/nope");
  expect(failure.message).not.toContain("terraform providers");
});

const SECRET = 's3cret "quoted" <&>\nof two long lines';
const TAKES_SECRET = {
  "program.yaml":
    "engine: terraform\ndescription: Leaks.\nparameters:\n  key: { type: string, required: true, sensitive: true }\n",
  "key.tf":
    'variable "key" {\n  type      = string\n  sensitive = true\n}\nlocals {\n  key = nonsensitive(var.key)\n}\n',
};

test("a secret in a condition's words is not told however it is spelled, nor is where the program ran", async () => {
  const { events, failure } = await planning(
    {
      ...TAKES_SECRET,
      "main.tf": `
        resource "terraform_data" "a" {
          lifecycle {
            precondition {
              condition     = length(local.key) == 0
              error_message = "\${path.cwd}/a: \${jsonencode({ a = local.key })} \${local.key} \${urlencode(local.key)} \${base64encode("user:\${local.key}")}"
            }
          }
        }
      `,
    },
    { key: SECRET },
  );
  expect(failure.message).toMatch(/^main\.tf line 5: Resource precondition failed: a: .*\(sensitive value\)/);
  expectUntold({ events, failure });
});

test("a provisioner's error names its resource, and tells neither the secret in its command nor that in its output", async () => {
  const program = await bench.writeProgram("leaking", {
    ...TAKES_SECRET,
    "main.tf": `
      resource "terraform_data" "a" {
        provisioner "local-exec" {
          command     = "printf '%s' \\"$KEY\\" | tee /dev/stderr | base64 -w0; exit 7 # \${local.key}"
          environment = { KEY = local.key }
        }
      }
    `,
  });
  const job = await (await bench.environment()).job(program, { key: SECRET });
  const plan = planned((await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }))).outcome);
  const { events, outcome } = await play(bench.engines.terraform.apply({ ...job, ...approved(plan) }));
  expect(outcome.failure).toMatchObject({
    code: "ENGINE_ERROR",
    address: "terraform_data.a",
    message: expect.stringMatching(/^main\.tf line 3: local-exec provisioner error: .*exit status 7/),
  });
  expectUntold({ events, outcome });
});

function expectUntold(told: object): void {
  const text = JSON.stringify(told);
  expect(text).toContain("(sensitive value)");
  const secrets = ["s3cret", "two long lines", "quoted", Buffer.from(SECRET).toString("base64").slice(4, 24)];
  for (const piece of [...secrets, bench.directory]) expect(text).not.toContain(piece);
}

/** Plans a program of these files, which must fail. */
async function planning(files: Readonly<Record<string, string>>, parameters: JsonObject = {}) {
  const program = await bench.writeProgram(`failing-${(programs += 1)}`, {
    "program.yaml": "engine: terraform\ndescription: Fails.\n",
    ...files,
  });
  const job = await (await bench.environment()).job(program, parameters);
  const { events, outcome } = await play(bench.engines.terraform.plan({ ...job, mode: "APPLY" }));
  if (outcome.result !== "failed") throw new Error("it did not fail");
  return { events, failure: outcome.failure };
}

let programs = 0;
