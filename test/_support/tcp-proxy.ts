import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** Stands between a client and a server of this machine, and does to their connections what networks do. */
export interface TcpProxy {
  /** The server's URL, by way of the proxy. */
  through(url: string): string;
  /** To the server's new port, for connections from now on. */
  redirect(port: number): void;
  /** Everything passes again: replies that were held come now, those that were swallowed never do. */
  forward(): void;
  /** Requests pass and replies wait, as when a link is down one way for a while. */
  holdReplies(): void;
  /** Requests pass and replies vanish. A connection that lost one stays open and silent, for good. */
  swallowReplies(): void;
  /** Nothing passes. Connections are accepted, and silent for good. */
  blackhole(): void;
  /** The next `COMMIT` isn't passed on: its connection is cut instead. Resolves when that has happened. */
  cutBeforeCommit(): Promise<void>;
  /** The next COMMIT is done, and instead of its reply the connection is cut. Resolves when that has happened. */
  cutAfterCommit(): Promise<void>;
  close(): Promise<void>;
}

/** A query of PostgreSQL's simple protocol, and what its server answers however the query came. */
const COMMIT = message("Q", "COMMIT");
const COMMITTED = message("C", "COMMIT");

/** Before the server on `port` of 127.0.0.1. */
export async function startTcpProxy(port: number): Promise<TcpProxy> {
  let target = port;
  let mode: Mode = "forward";
  let beforeCommit: (() => void) | undefined;
  let afterCommit: (() => void) | undefined;
  const pairs = new Set<Pair>();

  const server = createServer((client) => {
    const pair: Pair = { client, upstream: connect(target, "127.0.0.1"), silent: mode === "blackhole" };
    const { upstream } = pair;
    pairs.add(pair);
    if (mode === "holdReplies") upstream.pause();
    client.setNoDelay(true);
    upstream.setNoDelay(true);
    client.on("data", (bytes) => {
      pair.silent ||= mode === "blackhole";
      if (pair.silent) return;
      if (beforeCommit && bytes.includes(COMMIT)) {
        end(pair);
        beforeCommit();
        beforeCommit = undefined;
      } else upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      pair.silent ||= mode === "blackhole" || mode === "swallowReplies";
      if (pair.silent) return;
      if (afterCommit && bytes.includes(COMMITTED)) {
        end(pair);
        afterCommit();
        afterCommit = undefined;
      } else client.write(bytes);
    });
    for (const side of [client, upstream]) side.on("error", () => undefined); // it closes too
    client.on("close", () => {
      pairs.delete(pair);
      end(pair);
    });
    upstream.on("close", () => {
      if (!pair.silent) end(pair);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");

  const become = (next: Mode) => {
    mode = next;
    for (const { upstream } of pairs) upstream[mode === "holdReplies" ? "pause" : "resume"]();
  };

  return {
    through(url) {
      const by = new URL(url);
      by.hostname = "127.0.0.1";
      by.port = String(address.port);
      return by.href;
    },
    redirect: (next) => void (target = next),
    forward: () => become("forward"),
    holdReplies: () => become("holdReplies"),
    swallowReplies: () => become("swallowReplies"),
    blackhole: () => become("blackhole"),
    cutBeforeCommit: () => new Promise((resolve) => (beforeCommit = resolve)),
    cutAfterCommit: () => new Promise((resolve) => (afterCommit = resolve)),
    async close() {
      const closed = once(server, "close");
      server.close();
      pairs.forEach(end);
      await closed;
    },
  };
}

function end({ client, upstream }: Pair): void {
  client.destroy();
  upstream.destroy();
}

/** Of PostgreSQL's protocol: its kind, its length with the length's own four bytes, a text, a zero. */
function message(kind: string, text: string): Buffer {
  const body = Buffer.from(`${kind}\0\0\0\0${text}\0`, "latin1");
  body.writeInt32BE(body.length - 1, 1);
  return body;
}

type Mode = "forward" | "holdReplies" | "swallowReplies" | "blackhole";

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  silent: boolean;
}
