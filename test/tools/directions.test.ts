import { describe, expect, test } from "@jest/globals";
import { Linter } from "eslint";

import { directions } from "../../tools/lint/directions.mjs";

const linter = new Linter({ configType: "flat" });
const RULE = "no-restricted-imports";

const machine = "libs/state-machines/src/some-machine.ts";
const kit = "libs/service-kit/src/some-concept.ts";
const eventing = "libs/eventing/src/some-concept.ts";
const service = "services/iac-provisioning/src/some-aggregate.ts";
const host = "services/runtime-cloud-host/src/main.ts";

describe("refuses", () => {
  test.each([
    ["a machine that imports the database", machine, "@prisma/client"],
    ["a machine that imports a queue", machine, "bullmq"],
    ["a machine that imports the wire", machine, "@connectrpc/connect"],
    ["a machine that imports the service kit", machine, "@runtime-cloud/service-kit/clock"],
    ["a service kit that imports eventing", kit, "@runtime-cloud/eventing/relay"],
    ["a service kit that imports Redis", kit, "ioredis"],
    ["eventing that imports a service", eventing, "@runtime-cloud/execution-capacity/leases/leases"],
    ["eventing that imports a transport", eventing, "@grpc/grpc-js"],
    ["a service that imports a service", service, "@runtime-cloud/runtime-environment/main"],
    ["a service that imports a service by its path", service, "../../../../services/execution-capacity/src/main.ts"],
    ["a service that imports the queue", service, "bullmq"],
    ["a service that imports the dashboards", service, "@bull-board/api"],
    ["a service that imports the local servers", service, "@runtime-cloud/local-servers/postgres"],
    ["a host that imports the queue", host, "bullmq"],
  ])("%s", (_what, file, imported) => {
    expect(refusals(file, imported)).toEqual([RULE]);
  });
});

describe("allows", () => {
  test.each([
    ["a machine its contract", machine, "@runtime-cloud/contracts/runtimecloud/options/v1/options_pb"],
    ["eventing the queue", eventing, "bullmq"],
    ["eventing the machines", eventing, "@runtime-cloud/state-machines/decide"],
    ["the service kit its transport", kit, "@grpc/grpc-js"],
    ["a service eventing", service, "@runtime-cloud/eventing/relay"],
    ["the host a service", host, "@runtime-cloud/execution-capacity/definition"],
    ["eventing the dashboards", eventing, "@bull-board/api"],
  ])("%s", (_what, file, imported) => {
    expect(refusals(file, imported)).toEqual([]);
  });
});

function refusals(file: string, imported: string): (string | null)[] {
  const messages = linter.verify(`import "${imported}";\n`, directions, { filename: file });
  return messages.map((message) => message.ruleId);
}
