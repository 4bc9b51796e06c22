import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";

/** An address that a program reads while it is planned or applied, and that answers only when a test lets it. */
export interface ProvisioningGate {
  /** A remote state of the `http` backend, without outputs. */
  address: string;
  /** Resolves when somebody waits at it. */
  reached(): Promise<void>;
  /** Answers whoever waits, and whoever comes. */
  open(): void;
  /** Whoever comes from now on waits. */
  shut(): void;
  close(): Promise<void>;
}

const EMPTY_STATE = JSON.stringify({
  version: 4,
  terraform_version: "1.5.0",
  serial: 1,
  lineage: "gate",
  outputs: {},
  resources: [],
});

export async function startProvisioningGate(): Promise<ProvisioningGate> {
  const waiting = new Set<ServerResponse>();
  const arrivals = new Set<() => void>();
  let isOpen = false;
  const server = createServer((_request, response) => {
    response.once("close", () => waiting.delete(response));
    waiting.add(response);
    if (isOpen) answer(response);
    for (const arrive of arrivals) arrive();
    arrivals.clear();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");

  return {
    address: `http://127.0.0.1:${address.port}/state`,
    reached: () => (waiting.size > 0 ? Promise.resolve() : new Promise((resolve) => arrivals.add(resolve))),
    open() {
      isOpen = true;
      waiting.forEach(answer);
    },
    shut: () => void (isOpen = false),
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function answer(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" }).end(EMPTY_STATE);
}
