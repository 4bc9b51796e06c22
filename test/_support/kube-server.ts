import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { kindOf, type KubeObject } from "./kube-objects.ts";
import { type KubeList, kubeStore, type KubeStore } from "./kube-store.ts";
import {
  answerJson,
  answerStatus,
  badSelector,
  forbidden,
  type KubeStatus,
  namespaceNotFound,
  unauthorized,
} from "./kube-status.ts";
import { kubeSelector } from "./kube-selector.ts";
import { type KubeWatches, kubeWatches } from "./kube-watches.ts";

/**
 * An API server of this machine that speaks the protocol of Kubernetes for Deployments, StatefulSets and DaemonSets:
 * TLS, bearer tokens, lists by pages, watches from a resource version, and Status objects for what it refuses.
 */
export interface KubeServer {
  port: number;
  /** The token that it accepts now. */
  token: string;
  /** What it holds. A change is told to whoever watches. */
  store: KubeStore;
  watches: KubeWatches;
  /** Namespaces that are there. */
  namespaces: Set<string>;
  /** What the token may not do, as in `list deployments`. */
  denied: Set<string>;
  /** Decides on a request before the server does; true: it has answered, or never will. */
  fault: Fault | undefined;
  /** Requests so far, as in `list deployments`. */
  asked: string[];
  /** A kubeconfig for it, with its token inside. */
  kubeconfig(user?: Record<string, unknown>): string;
  /** PEM of the authority that signed its certificate. */
  authority: string;
  close(): Promise<void>;
}

export type Fault = (asked: string, response: ServerResponse) => boolean;

const USER = "system:serviceaccount:runtime-cloud:observer";

export async function startKubeServer(token = "t0p-s3cret-token"): Promise<KubeServer> {
  const { cert, key } = await certificate();
  const store = kubeStore();
  const watches = kubeWatches(store);

  const tls = createServer({ cert, key }, (request, response) => {
    const refusal = answer(server, request, response);
    if (refusal) answerStatus(response, refusal);
  });
  tls.listen(0, "127.0.0.1");
  await once(tls, "listening");
  const address = tls.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const { port } = address;

  const server: KubeServer = {
    port,
    token,
    store,
    watches,
    namespaces: new Set(["default", "shop"]),
    denied: new Set(),
    fault: undefined,
    asked: [],
    authority: cert,
    kubeconfig: (user = { token: server.token }) =>
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        "current-context": "main",
        contexts: [{ name: "main", context: { cluster: "main", user: "observer" } }],
        clusters: [
          {
            name: "main",
            cluster: {
              server: `https://127.0.0.1:${port}`,
              "certificate-authority-data": Buffer.from(cert).toString("base64"),
            },
          },
        ],
        users: [{ name: "observer", user }],
      }),
    async close() {
      watches.end();
      tls.closeAllConnections();
      tls.close();
      await once(tls, "close");
    },
  };
  return server;
}

/** Answers, or says how the request is refused. */
function answer(server: KubeServer, request: IncomingMessage, response: ServerResponse): KubeStatus | undefined {
  const { pathname, searchParams: query } = new URL(request.url ?? "/", "https://server");
  const [, namespace = "", resource = ""] = /^\/apis\/apps\/v1\/namespaces\/([^/]+)\/([^/]+)$/.exec(pathname) ?? [];
  const [, wanted] = /^\/api\/v1\/namespaces\/([^/]+)$/.exec(pathname) ?? [];
  const kind = kindOf(resource);
  const verb = wanted === undefined ? (query.get("watch") === "true" ? "watch" : "list") : "get";
  const asked = `${verb} ${wanted === undefined ? resource : "namespaces"}`;
  server.asked.push(asked);
  if (server.fault?.(asked, response)) return undefined;
  if (request.headers.authorization !== `Bearer ${server.token}`) return unauthorized;
  if (server.denied.has(asked)) return forbidden(USER, verb, resource, namespace);

  if (wanted !== undefined) {
    if (!server.namespaces.has(wanted)) return namespaceNotFound(wanted);
    answerJson(response, 200, { kind: "Namespace", apiVersion: "v1", metadata: { name: wanted } });
    return undefined;
  }
  if (!kind) {
    response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found\n");
    return undefined;
  }
  const selector = query.get("labelSelector") ?? "";
  const matches = kubeSelector(selector);
  if (!matches) return badSelector(selector);
  const concerns = (object: KubeObject) =>
    object.kind === kind && object.metadata.namespace === namespace && matches(object.metadata.labels);
  if (verb === "watch") {
    server.watches.serve(kind, concerns, query, response);
    return undefined;
  }
  const list = server.store.list(concerns, query);
  if ("code" in list) return list;
  answerJson(response, 200, { kind: `${kind}List`, apiVersion: "apps/v1", ...listed(list) });
  return undefined;
}

/** Items of a list don't say what they are. */
function listed({ items, ...metadata }: KubeList) {
  return { metadata, items: items.map(({ apiVersion, kind, ...item }) => item) };
}

/** Of a server at 127.0.0.1, signed by itself. */
async function certificate(): Promise<{ cert: string; key: string }> {
  const folder = await mkdtemp(join(tmpdir(), "kube-server-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  try {
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const subject = ["-subj", "/CN=kubernetes", "-addext", "subjectAltName=IP:127.0.0.1"];
    const files = ["-keyout", key, "-out", cert];
    await promisify(execFile)("openssl", ["req", "-x509", ...curve, ...files, "-days", "2", ...subject]);
    return { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
