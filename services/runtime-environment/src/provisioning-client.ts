import { type CallOptions, type Client, createClient } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { Cause } from "@runtime-cloud/eventing/cause";
import { tenantHeader } from "@runtime-cloud/service-kit/auth";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { serviceToken } from "@runtime-cloud/service-kit/service-token";
import type { Settings } from "./settings.ts";

export interface ProvisioningClient {
  rpc: Client<typeof IaCProvisioningService>;
  close(): void;
}

/** How long a call may take, and what ends it earlier. */
export interface CallLimits {
  signal?: AbortSignal;
  timeoutMs: number;
}

/** The client of IaCProvisioningService. Nothing connects before the first call. */
export function createProvisioningClient(settings: ProvisioningSettings): ProvisioningClient {
  const { hostname, port, protocol } = new URL(settings.PROVISIONING_URL);
  const secure = protocol === "https:";
  const token = serviceToken(settings);
  const transport = createGrpcJsTransport({
    address: `${hostname}:${port || (secure ? 443 : 80)}`,
    ...(token && { token }),
    ...(secure && { tls: {} }),
  });
  return { rpc: createClient(IaCProvisioningService, transport), close: () => transport.close() };
}

/** A call for one tenant, as part of what `cause` set off. */
export function callFor(tenantId: string, cause: Cause, { signal, timeoutMs }: CallLimits): CallOptions {
  return {
    timeoutMs,
    ...(signal && { signal }),
    headers: {
      [tenantHeader]: tenantId,
      "x-correlation-id": cause.correlationId,
      ...(cause.traceparent !== undefined && { traceparent: cause.traceparent }),
    },
  };
}

type ProvisioningSettings = Pick<Settings, "PROVISIONING_URL" | "SERVICE_TOKEN" | "SERVICE_TOKEN_FILE">;
