import { type DescMethod } from "@bufbuild/protobuf";
import { createContextValues, type Interceptor, type Transport } from "@connectrpc/connect";
import { runStreamingCall, runUnaryCall } from "@connectrpc/connect/protocol";
import { type CallOptions, Client, type ClientOptions, credentials } from "@grpc/grpc-js";
import { DEFAULT_DEADLINE_MS } from "./call-limits.ts";
import { type Clock, systemClock } from "./clock.ts";
import { callStream, callUnary, pathOf, untilAvailable } from "./grpc-calls.ts";
import { MAX_MESSAGE_BYTES } from "./serve.ts";

export interface GrpcJsTransportOptions {
  /** `host:port`. Nothing connects before the first call. */
  address: string;
  /** Asked at each call; sent as `authorization: Bearer …`. */
  token?: () => string;
  /** The deadline of a unary call that sets none. Streams live until they end or their signal is aborted. */
  defaultTimeoutMs?: number;
  tls?: { ca?: string; cert?: string; key?: string };
  interceptors?: readonly Interceptor[];
  clock?: Clock;
}

/** A transport that holds a connection. */
export type GrpcJsTransport = Transport & { close(): void };

/**
 * Calls another service by gRPC over @grpc/grpc-js, which survives GOAWAY without failing calls. A unary call that
 * ends UNAVAILABLE is tried up to four times, so every command carries an idempotency key; a stream never is. To leave
 * a stream before its end, abort its signal.
 */
export function createGrpcJsTransport({
  address,
  token,
  defaultTimeoutMs = DEFAULT_DEADLINE_MS,
  tls,
  interceptors = [],
  clock = systemClock,
}: GrpcJsTransportOptions): GrpcJsTransport {
  const identity = tls ? credentials.createSsl(...pems(tls)) : credentials.createInsecure();
  const client = new Client(address, identity, channelOptions);
  const common = { interceptors: [...interceptors] };

  const requestOf = <Method extends DescMethod>(method: Method, header: HeaderFields) => {
    const headers = new Headers(header);
    if (token && !headers.has("authorization")) headers.set("authorization", `Bearer ${token()}`);
    return {
      service: method.parent,
      method,
      requestMethod: "POST",
      url: `${tls ? "https" : "http"}://${address}${pathOf(method)}`,
      header: headers,
    };
  };
  const deadlineIn = (timeoutMs: number | undefined): CallOptions =>
    timeoutMs === undefined ? {} : { deadline: clock.now().getTime() + timeoutMs };

  return {
    unary(method, signal, timeoutMs = defaultTimeoutMs, header: HeaderFields, message, contextValues) {
      const options = deadlineIn(timeoutMs);
      return runUnaryCall({
        ...common,
        timeoutMs,
        ...(signal && { signal }),
        req: {
          ...requestOf(method, header),
          stream: false,
          message,
          contextValues: contextValues ?? createContextValues(),
        },
        next: (request) => untilAvailable(() => callUnary(client, request, options), request.signal),
      });
    },
    stream(method, signal, timeoutMs, header: HeaderFields, message, contextValues) {
      return runStreamingCall({
        ...common,
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(signal && { signal }),
        req: {
          ...requestOf(method, header),
          stream: true,
          message,
          contextValues: contextValues ?? createContextValues(),
        },
        next: (request) => callStream(client, request, deadlineIn(timeoutMs)),
      });
    },
    close() {
      client.close();
    },
  };
}

/** Connect names the browser's type for it, which Node's own typings lack. */
type HeaderFields = ConstructorParameters<typeof Headers>[0];

const KEEPALIVE_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
/** Shorter than a call's tries take together, so that the first call after a restart finds the service. */
const MAX_RECONNECT_MS = 500;
const FIRST_RECONNECT_MS = 100;

const channelOptions: ClientOptions = {
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  "grpc.keepalive_time_ms": KEEPALIVE_MS,
  "grpc.keepalive_timeout_ms": KEEPALIVE_TIMEOUT_MS,
  "grpc.initial_reconnect_backoff_ms": FIRST_RECONNECT_MS,
  "grpc.max_reconnect_backoff_ms": MAX_RECONNECT_MS,
  // Services call each other directly, whatever proxy the environment names for the outside.
  "grpc.enable_http_proxy": 0,
  "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }], methodConfig: [] }),
  "grpc.service_config_disable_resolution": 1,
};

type Pem = Buffer | null;

function pems({ ca, key, cert }: { ca?: string; cert?: string; key?: string }): [Pem, Pem, Pem] {
  const pem = (text: string | undefined) => (text === undefined ? null : Buffer.from(text));
  return [pem(ca), pem(key), pem(cert)];
}
