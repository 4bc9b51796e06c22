import { type Client, createClient } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { createGrpcJsTransport, type GrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { serviceToken } from "@runtime-cloud/service-kit/service-token";
import type { Settings } from "./settings.ts";

export type ProvisioningClient = Client<typeof IaCProvisioningService>;

/** The connection to IaCProvisioningService; nothing connects before the first call. Close it when the service stops. */
export function provisioningTransport(settings: Settings): GrpcJsTransport {
  const { protocol, hostname, port } = new URL(settings.PROVISIONING_URL);
  const secure = protocol === "https:";
  const token = serviceToken(settings);
  return createGrpcJsTransport({
    address: `${hostname}:${port || (secure ? "443" : "80")}`,
    ...(token && { token }),
    ...(secure && { tls: {} }),
  });
}

export function provisioningClient(transport: GrpcJsTransport): ProvisioningClient {
  return createClient(IaCProvisioningService, transport);
}
