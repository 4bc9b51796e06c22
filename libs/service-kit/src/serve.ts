import { setMaxListeners } from "node:events";
import { createRegistry } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type Interceptor } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { file_google_rpc_error_details } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import { limitCalls } from "./call-limits.ts";
import { createHealth, type Health } from "./health.ts";
import type { Logger } from "./logger.ts";
import { listen } from "./mux.ts";
import { nodeHandler } from "./node-handler.ts";
import type { ServerTls } from "./tls.ts";

export interface ServeOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  routes: (router: ConnectRouter) => void;
  /** See `standardInterceptors` for the set and its order. */
  interceptors: readonly Interceptor[];
  /** Full names of the services, for health. */
  services: readonly string[];
  /** Replaces the health that `services` alone makes, to bring probes and to share it with the admin server. */
  health?: Health;
  logger: Logger;
  /** How long calls under way may take to end once the server drains, in milliseconds. */
  graceMs: number;
  tls?: ServerTls;
}

export interface Server {
  url: string;
  port: number;
  /** Says NOT_SERVING, sends clients elsewhere, lets calls end and closes. Once: a second call waits for the first. */
  drain(): Promise<void>;
}

/** Of one message, after decompression. */
export const MAX_MESSAGE_BYTES = 4 * 1_024 * 1_024;
/** The longest deadline that a client may set; `limitCalls` holds unary calls to less. */
const MAX_STREAM_MS = 24 * 60 * 60 * 1_000;

/** Serves RPCs by Connect, gRPC and gRPC-Web on one port. */
export async function serve(options: ServeOptions): Promise<Server> {
  const { host, port, routes, interceptors, services, logger, graceMs, tls } = options;
  const health = options.health ?? createHealth({ services });
  const draining = new AbortController();
  const lastCall = new AbortController();
  // Each call under way listens to both.
  setMaxListeners(0, draining.signal, lastCall.signal);
  const handler = nodeHandler(
    {
      routes(router) {
        health.routes(router);
        routes(router);
      },
      interceptors: [...interceptors, limitCalls(draining.signal)],
      // Never Brotli: Node 20's decoder writes out of bounds on hostile input, and it runs before any interceptor.
      acceptCompression: [compressionGzip],
      readMaxBytes: MAX_MESSAGE_BYTES,
      writeMaxBytes: MAX_MESSAGE_BYTES,
      maxTimeoutMs: MAX_STREAM_MS,
      // Errors in the middle of an answer carry their details as Any.
      jsonOptions: { ignoreUnknownFields: false, registry: createRegistry(file_google_rpc_error_details) },
      shutdownSignal: lastCall.signal,
    },
    logger,
  );
  const mux = await listen({ host, port, handler, ...(tls && { tls }) });

  const drain = async () => {
    logger.info({ graceMs }, "draining");
    health.drain();
    draining.abort(new ConnectError("the server is shutting down: try again", Code.Unavailable));
    await mux.close(graceMs, () => {
      lastCall.abort(new ConnectError("the server has shut down: try again", Code.Unavailable));
    });
  };
  let drained: Promise<void> | undefined;
  return {
    url: `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${mux.port}`,
    port: mux.port,
    drain: () => (drained ??= drain()),
  };
}
