import { once } from "node:events";
import http from "node:http";

export interface LoopbackServer {
  /** `http://127.0.0.1:<port>`, without a path. */
  url: string;
  close(): Promise<void>;
}

const LOOPBACK = "127.0.0.1";

/** Listens on loopback for this machine's own processes alone; port 0 takes a free one. */
export async function listenLoopback(handler: http.RequestListener, port = 0): Promise<LoopbackServer> {
  const server = http.createServer(handler);
  server.listen(port, LOOPBACK);
  await once(server, "listening");
  const address = server.address();
  const listening = typeof address === "object" && address ? address.port : port;
  return {
    url: `http://${LOOPBACK}:${listening}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
