import type { MessageInitShape } from "@bufbuild/protobuf";
import type { InspectEnvironmentResponseSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { Provisioning } from "@runtime-cloud/runtime-environment/context";
import { peer } from "@runtime-cloud/eventing/peer";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { serve } from "@runtime-cloud/service-kit/serve";

export type Inspected = MessageInitShape<typeof InspectEnvironmentResponseSchema>;

/** A gRPC server that answers InspectEnvironment as a test tells it to, and the client that calls it. */
export interface EngineSide {
  provisioning: Provisioning;
  port: number;
  /** What the next calls are answered with. */
  answer: () => Inspected | Promise<Inspected>;
  /** The server is there no more, and the client still is. */
  down(): Promise<void>;
  close(): Promise<void>;
}

export async function startEngineSide(): Promise<EngineSide> {
  const server = await serve({
    host: "127.0.0.1",
    port: 0,
    interceptors: [],
    services: [IaCProvisioningService.typeName],
    logger: silentLogger(),
    graceMs: 100,
    routes: (router) => router.service(IaCProvisioningService, { inspectEnvironment: () => side.answer() }),
  });
  const provisioning = peer(IaCProvisioningService, server.url, { SERVICE_TOKEN: "s3cr3t-token" });
  let draining: Promise<unknown> | undefined;
  const drained = () => (draining ??= server.drain());
  const side: EngineSide = {
    provisioning,
    port: server.port,
    answer: () => ({}),
    async down() {
      await drained();
    },
    async close() {
      provisioning.close();
      await drained();
    },
  };
  return side;
}
