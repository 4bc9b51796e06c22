import type { DescService } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient } from "@connectrpc/connect";
import { tenantHeader } from "@runtime-cloud/service-kit/auth";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { serviceToken } from "@runtime-cloud/service-kit/service-token";
import type { SharedSettings } from "@runtime-cloud/service-kit/settings";
import { type Cause, CORRELATION_HEADER } from "./cause.ts";

/** Another service, called by gRPC under this service's own credential. */
export interface Peer<Service extends DescService> {
  rpc: Client<Service>;
  close(): void;
}

/** How long a call may take, and what ends it earlier. */
export interface CallLimits {
  signal?: AbortSignal;
  timeoutMs: number;
}

/** Nothing connects before the first call. `url` is `http://host:port`, or `https://` for TLS. */
export function peer<Service extends DescService>(
  service: Service,
  url: string,
  settings: Pick<SharedSettings, "SERVICE_TOKEN" | "SERVICE_TOKEN_FILE">,
): Peer<Service> {
  const { hostname, port, protocol } = new URL(url);
  const secure = protocol === "https:";
  const token = serviceToken(settings);
  const transport = createGrpcJsTransport({
    address: `${hostname}:${port || (secure ? 443 : 80)}`,
    ...(token && { token }),
    ...(secure && { tls: {} }),
  });
  return { rpc: createClient(service, transport), close: () => transport.close() };
}

/** A call for one tenant, as part of what `cause` set off. */
export function callFor(tenantId: string, cause: Cause, { signal, timeoutMs }: CallLimits): CallOptions {
  return {
    timeoutMs,
    ...(signal && { signal }),
    headers: {
      [tenantHeader]: tenantId,
      [CORRELATION_HEADER]: cause.correlationId,
      ...(cause.traceparent !== undefined && { traceparent: cause.traceparent }),
    },
  };
}
