import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { credentials, loadPackageDefinition, Metadata, type ServiceClientConstructor, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { ServiceName } from "@runtime-cloud/migrations/services";
import { fileURLToPath } from "node:url";
import { deploy, type TestDeployment } from "../_support/deployment.ts";

const START_MS = 60_000;
const protoDir = fileURLToPath(new URL("../../proto", import.meta.url));

/** Each service by its proto file, and a query that needs nothing to be there. */
const services: { name: ServiceName; proto: string; service: string; query: string }[] = [
  {
    name: "iac-provisioning",
    proto: "runtimecloud/provisioning/v1/iac_provisioning_service.proto",
    service: "runtimecloud.provisioning.v1.IaCProvisioningService",
    query: "ListProvisioningRuns",
  },
  {
    name: "execution-capacity",
    proto: "runtimecloud/capacity/v1/execution_capacity_service.proto",
    service: "runtimecloud.capacity.v1.ExecutionCapacityService",
    query: "ListWorkerPools",
  },
  {
    name: "runtime-environment",
    proto: "runtimecloud/inventory/v1/runtime_environment_service.proto",
    service: "runtimecloud.inventory.v1.RuntimeEnvironmentService",
    query: "ListEnvironments",
  },
];

let deployment: TestDeployment;

beforeAll(async () => {
  deployment = await deploy(services.map(({ name }) => name));
}, START_MS);
afterAll(() => deployment.close(), START_MS);

describe.each(services)(
  "$name, to a client that has nothing but the proto files",
  ({ name, proto, service, query }) => {
    test("says by grpc.health.v1 that it serves", async () => {
      const answer = await call("grpc/health/v1/health.proto", "grpc.health.v1.Health", "Check", { service });
      expect(answer).toEqual({ status: "SERVING" });
    });

    test("answers a query by gRPC", async () => {
      const answer = await call(proto, service, query, {});
      expect(answer).toMatchObject({ next_page_token: "" });
    });

    test("refuses a call without a token by gRPC", async () => {
      await expect(call(proto, service, query, {}, new Metadata())).rejects.toMatchObject({
        code: status.UNAUTHENTICATED,
      });
    });

    test("answers the same query as JSON over HTTP", async () => {
      const response = await fetch(`${deployment.services.urls[name]}/${service}/${query}`, {
        method: "POST",
        headers: { authorization: `Bearer ${deployment.token}`, "content-type": "application/json" },
        body: "{}",
      });
      expect([response.status, await response.json()]).toEqual([200, {}]);
    });

    async function call(file: string, fullName: string, method: string, request: object, metadata = withToken()) {
      const definition = loadSync(file, { includeDirs: [protoDir], keepCase: true, enums: String, defaults: true });
      const Client = serviceIn(loadPackageDefinition(definition), fullName);
      const client = new Client(new URL(deployment.services.urls[name]).host, credentials.createInsecure());
      try {
        return await new Promise<unknown>((resolve, reject) => {
          const rpc = client[method];
          if (typeof rpc !== "function") throw new Error(`${fullName} has no ${method}`);
          rpc.call(client, request, metadata, (error: Error | null, answer: unknown) => {
            if (error) reject(error);
            else resolve(answer);
          });
        });
      } finally {
        client.close();
      }
    }
  },
);

function withToken(): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${deployment.token}`);
  return metadata;
}

/** Finds `a.b.C` in a loaded package. */
function serviceIn(loaded: object, fullName: string): ServiceClientConstructor {
  let found: unknown = loaded;
  for (const part of fullName.split(".")) found = Reflect.get(Object(found), part);
  if (isService(found)) return found;
  throw new Error(`no service ${fullName} in the proto files`);
}

function isService(value: unknown): value is ServiceClientConstructor {
  return typeof value === "function" && "service" in value;
}
