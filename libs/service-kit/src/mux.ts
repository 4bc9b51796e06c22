import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { ServerTls } from "./tls.ts";

/** Takes requests of either protocol, like the handler that `connectNodeAdapter` makes. */
export type AnyHandler = (
  request: http.IncomingMessage | http2.Http2ServerRequest,
  response: http.ServerResponse | http2.Http2ServerResponse,
) => void;

export interface MuxOptions {
  host: string;
  port: number;
  handler: AnyHandler;
  tls?: ServerTls;
}

export interface Mux {
  port: number;
  /**
   * Stops listening, tells clients to go elsewhere (GOAWAY, `connection: close`), waits for what is under way up to
   * `graceMs`, calls `lastCall` and destroys what is left.
   */
  close(graceMs: number, lastCall: () => void): Promise<void>;
}

/** How long a connection may stay silent before its first byte shows its protocol. */
const FIRST_BYTE_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 15_000;
/** How often Node looks for connections that are past a timeout. */
const TIMEOUT_CHECK_MS = 5_000;
/** How a client with prior knowledge of HTTP/2 begins (RFC 9113, 3.4). */
const PREFACE = "PRI";
/** Time between GOAWAY, or the last call, and the end of the connection: what is written must get out. */
const FLUSH_MS = 200;

const h2Options = {
  settings: { maxConcurrentStreams: 256 },
  maxSessionMemory: 16, // megabytes
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
} as const;

/**
 * One port for HTTP/1.1 and HTTP/2. Without TLS the first bytes tell them apart: a client that speaks HTTP/2 with prior
 * knowledge starts with a preface of its own. With TLS the client says so by ALPN.
 */
export async function listen({ host, port, handler, tls }: MuxOptions): Promise<Mux> {
  const connections = new Connections();
  const handle: AnyHandler = (request, response) => {
    if (connections.closing && "shouldKeepAlive" in response) response.shouldKeepAlive = false;
    response.once("close", connections.exchange());
    handler(request, response);
  };
  const server = tls ? secureServer(tls, handle, connections) : cleartextServer(handle, connections);
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : port,
    async close(graceMs, lastCall) {
      server.close();
      connections.goAway();
      await Promise.race([connections.idle(), wait(graceMs, undefined, { ref: false })]);
      lastCall();
      await Promise.race([connections.idle(), wait(FLUSH_MS, undefined, { ref: false })]);
      await wait(connections.open > 0 ? FLUSH_MS : 0);
      connections.destroy();
    },
  };
}

function secureServer(tls: ServerTls, handle: AnyHandler, connections: Connections): net.Server {
  const clientCertificates = tls.ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true };
  const server = http2.createSecureServer(
    {
      ...h2Options,
      ...tls,
      ...clientCertificates,
      minVersion: "TLSv1.3",
      allowHTTP1: true,
      handshakeTimeout: FIRST_BYTE_TIMEOUT_MS,
    },
    handle,
  );
  server.on("secureConnection", (socket: net.Socket) => connections.add(socket));
  server.on("session", (session) => connections.addSession(session));
  return server;
}

function cleartextServer(handle: AnyHandler, connections: Connections): net.Server {
  const h1 = http.createServer(
    { headersTimeout: HEADERS_TIMEOUT_MS, connectionsCheckingInterval: TIMEOUT_CHECK_MS },
    handle,
  );
  const h2 = http2.createServer(h2Options, handle);
  h2.on("session", (session) => connections.addSession(session));
  const server = net.createServer((socket) => {
    connections.add(socket);
    socket.setTimeout(FIRST_BYTE_TIMEOUT_MS, () => socket.destroy());
    let first = "";
    const peek = (bytes: Buffer) => {
      first += bytes.toString("latin1");
      if (first.length < PREFACE.length && PREFACE.startsWith(first)) return;
      socket.off("data", peek);
      socket.setTimeout(0).removeAllListeners("timeout");
      socket.pause();
      socket.unshift(Buffer.from(first, "latin1"));
      (first.startsWith(PREFACE) ? h2 : h1).emit("connection", socket);
      process.nextTick(() => socket.resume());
    };
    socket.on("data", peek);
    socket.on("error", () => socket.destroy());
  });
  // It is this event on which Node's HTTP server starts to enforce its timeouts, and it never listens itself.
  server.on("listening", () => h1.emit("listening"));
  server.on("close", () => h1.close());
  return server;
}

/** Every open connection, and how many exchanges are under way on them. */
class Connections {
  closing = false;
  readonly #sockets = new Set<net.Socket>();
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  #exchanges = 0;
  #onIdle: (() => void)[] = [];

  get open(): number {
    return this.#sockets.size;
  }

  add(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  addSession(session: http2.ServerHttp2Session): void {
    this.#sessions.add(session);
    session.once("close", () => this.#sessions.delete(session));
    if (this.closing) session.close();
  }

  /** Counts an exchange; the result ends it. */
  exchange(): () => void {
    this.#exchanges += 1;
    return () => {
      this.#exchanges -= 1;
      if (this.#exchanges === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    };
  }

  /** Resolves when no exchange is under way. */
  idle(): Promise<void> {
    if (this.#exchanges === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  goAway(): void {
    this.closing = true;
    for (const session of this.#sessions) session.close();
  }

  destroy(): void {
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }
}
