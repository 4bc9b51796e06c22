import { createServer } from "node:net";

/**
 * A TCP port of 127.0.0.1 that nothing listens on. Another process may take it before it is used, so whoever starts
 * a server on it tries again with another one.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === "string") throw new Error("The system gave no TCP port on 127.0.0.1.");
  return address.port;
}
