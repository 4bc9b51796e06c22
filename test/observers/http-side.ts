import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";

/** An HTTP server of this machine that answers as a test tells it to. */
export interface HttpSide {
  url: string;
  port: number;
  /** Answers by path; 404 elsewhere. */
  routes: Map<string, RequestListener>;
  /** Paths that were asked for, in order. */
  asked: string[];
  /** Resolves when no connection is open. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

export async function startHttpSide(): Promise<HttpSide> {
  const routes = new Map<string, RequestListener>();
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://side").pathname;
    asked.push(path);
    const route = routes.get(path);
    if (route) route(request, response);
    else response.writeHead(404).end();
  });
  const open = new Set<Promise<void>>();
  server.on("connection", (socket) => {
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    open.add(closed);
    void closed.then(() => open.delete(closed));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const { port } = address;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    routes,
    asked,
    async idle() {
      await Promise.all(open);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Answers with a text, or with JSON. */
export function says(body: string | object, status = 200): RequestListener {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return (_request, response) => {
    response.writeHead(status).end(text);
  };
}

/** Takes the request, and never answers. */
export const silence: RequestListener = () => undefined;

/** Cuts the connection. */
export const cut: RequestListener = (request) => void request.socket.destroy();

/** Writes for as long as somebody reads. */
export const endless: RequestListener = (_request, response) => {
  const chunk = "x".repeat(16_384);
  const write = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on("drain", write);
  write();
};

/** Sends elsewhere. */
export function redirect(location: string, status = 302): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { location }).end();
  };
}
