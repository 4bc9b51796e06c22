import { once } from "node:events";
import http from "node:http";
import { ConnectError } from "@connectrpc/connect";
import { bearerToken } from "./auth.ts";
import { Denied } from "./errors.ts";
import type { Health } from "./health.ts";
import type { Logger } from "./logger.ts";
import { isLoopback } from "./loopback.ts";
import type { Metrics } from "./metrics.ts";
import type { Verifier } from "./token-verifier.ts";

export interface AdminOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  health: Health;
  metrics: Metrics;
  /** Needed to listen beyond loopback, where every page but the two health checks then wants a bearer token. */
  verifier?: Verifier;
  logger: Logger;
}

export interface Admin {
  url: string;
  port: number;
  /** Serves everything under `path` by `handler`, which sees the whole URL. */
  mount(path: string, handler: http.RequestListener): void;
  close(): Promise<void>;
}

/** What a token must hold to see metrics and dashboards from another machine. */
export const adminScope = "platform:operate";

/** `/healthz` (alive), `/readyz` (can serve; 503 names what fails), `/metrics`, and what is mounted. */
export async function startAdmin({ host, port, health, metrics, verifier, logger }: AdminOptions): Promise<Admin> {
  const open = isLoopback(host);
  if (!open && !verifier) throw new Error("the admin server needs a verifier to listen beyond loopback");
  const mounted = new Map<string, http.RequestListener>();

  const answer = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const path = request.url?.split("?", 1)[0] ?? "/";
    if (path === "/healthz") return reply(response, 200, "ok");
    if (path === "/readyz") {
      const { ready, failing } = await health.readiness();
      return reply(response, ready ? 200 : 503, ready ? "ready" : `not ready: ${failing.join(", ")}`);
    }
    const refusal = open ? foreignPage(request) : await noOperator(request, verifier);
    if (refusal) return reply(response, refusal.status, refusal.text);
    if (path === "/metrics")
      return reply(response, 200, await metrics.registry.metrics(), metrics.registry.contentType);
    const handler = [...mounted].find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`))?.[1];
    if (handler) return handler(request, response);
    return reply(response, 404, `nothing here: ${["/healthz", "/readyz", "/metrics", ...mounted.keys()].join(" ")}`);
  };
  const server = http.createServer((request, response) => {
    answer(request, response).catch((err: unknown) => {
      logger.error({ err }, "admin request failed");
      reply(response, 500, "internal error");
    });
  });
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  const listening = typeof address === "object" && address ? address.port : port;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${listening}`,
    port: listening,
    mount(path, handler) {
      mounted.set(path.replace(/\/+$/, ""), handler);
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

interface PageRefusal {
  status: number;
  text: string;
}

/**
 * On loopback there is no token, but a browser must not be turned against it: a name that some site made resolve to
 * this machine, and writes that another site's page sends, are refused.
 */
function foreignPage({ headers, method = "GET" }: http.IncomingMessage): PageRefusal | undefined {
  const host = headers.host?.replace(/:\d+$/, "") ?? "";
  if (!isLoopback(host)) return { status: 403, text: "ask for this server by its loopback address" };
  const reads = method === "GET" || method === "HEAD";
  const own = headers.origin === undefined || headers.origin === `http://${headers.host}`;
  return reads || own ? undefined : { status: 403, text: "writes come from this server's own pages only" };
}

async function noOperator(
  { headers }: http.IncomingMessage,
  verifier: Verifier | undefined,
): Promise<PageRefusal | undefined> {
  try {
    const claims = await verifier?.(bearerToken(headers.authorization));
    if (claims?.scopes.has(adminScope)) return undefined;
    throw new Denied(`needs the scope "${adminScope}": ask the issuer for a token with it`);
  } catch (error) {
    if (error instanceof ConnectError) return { status: 401, text: error.rawMessage };
    if (error instanceof Denied) return { status: 403, text: error.message };
    throw error;
  }
}

function reply(response: http.ServerResponse, status: number, text: string, type = "text/plain; charset=utf-8"): void {
  if (response.headersSent) return void response.end();
  const challenge = status === 401 ? { "www-authenticate": "Bearer" } : {};
  response.writeHead(status, { "content-type": type, "x-content-type-options": "nosniff", ...challenge });
  response.end(text.endsWith("\n") ? text : `${text}\n`);
}
