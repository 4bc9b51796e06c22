import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Below what systems hand out for outgoing connections, which would otherwise take a port that we only looked at. */
const FIRST = 20_000;
const LAST = 32_000;
const TRIES = 100;

/**
 * A TCP port of 127.0.0.1 that nothing listens on. Another process may take it before it is used, so whoever starts
 * a server on it tries again with another one.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) return port;
  }
  throw new Error(`No TCP port from ${FIRST} to ${LAST} of 127.0.0.1 is free.`);
}

/** Whether nothing listens on a port of 127.0.0.1 now. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listening = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => resolve(true));
  });
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return listening;
}
