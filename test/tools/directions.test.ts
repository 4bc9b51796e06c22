import { describe, expect, test } from "@jest/globals";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const RULE = "no-restricted-imports";

/** A file of each part, since the linter reads types of files that exist; its text is replaced by the import. */
const machine = "libs/state-machines/src/decide.ts";
const kit = "libs/service-kit/src/clock.ts";
const eventing = "libs/eventing/src/relay.ts";
const service = "services/iac-provisioning/src/engines/subprocess.ts";

describe("refuses", () => {
  test.each([
    ["a machine that imports the database", machine, "@prisma/client"],
    ["a machine that imports a queue", machine, "bullmq"],
    ["a machine that imports the wire", machine, "@connectrpc/connect"],
    ["a machine that imports the service kit", machine, "@runtime-cloud/service-kit/clock"],
    ["a service kit that imports eventing", kit, "@runtime-cloud/eventing/relay"],
    ["a service kit that imports Redis", kit, "ioredis"],
    ["eventing that imports a service", eventing, "@runtime-cloud/execution-capacity/leases"],
    ["eventing that imports a transport", eventing, "@grpc/grpc-js"],
    ["a service that imports a service", service, "@runtime-cloud/runtime-environment/main"],
    ["a service that imports a service by its path", service, "../../../../services/execution-capacity/src/main.ts"],
    ["a service that imports the queue", service, "bullmq"],
    ["a service that imports the dashboards", service, "@bull-board/api"],
  ])("%s", async (_what, file, imported) => {
    expect(await refusals(file, imported)).toEqual([RULE]);
  });
});

describe("allows", () => {
  test.each([
    ["a machine its contract", machine, "@runtime-cloud/contracts/runtimecloud/options/v1/options_pb"],
    ["eventing the queue", eventing, "bullmq"],
    ["eventing the machines", eventing, "@runtime-cloud/state-machines/decide"],
    ["the service kit its transport", kit, "@grpc/grpc-js"],
    ["a service eventing", service, "@runtime-cloud/eventing/relay"],
  ])("%s", async (_what, file, imported) => {
    expect(await refusals(file, imported)).toEqual([]);
  });
});

async function refusals(file: string, imported: string): Promise<string[]> {
  const lint = ["node_modules/eslint/bin/eslint.js", "--stdin", "--stdin-filename", file, "--format", "json"];
  const eslint = spawn(process.execPath, lint, { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
  eslint.stdin.end(`import "${imported}";\n`);
  const [result]: unknown[] = JSON.parse(await text(eslint.stdout));
  return [...JSON.stringify(result).matchAll(/"ruleId":"([^"]+)"/g)].map((match) => match[1] ?? "");
}
