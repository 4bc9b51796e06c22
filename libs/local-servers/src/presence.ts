import { randomBytes } from "node:crypto";
import { connect, createServer } from "node:net";

const ANSWER_TIMEOUT_MS = 1_000;

/** Tells other processes of this machine that this one is still there; ends with it, however it ends. */
export interface Presence {
  /** What {@link isPresent} takes, in any process. Unlike a pid it is never another program's later. */
  readonly proof: string;
  end(): void;
}

export async function announcePresence(): Promise<Presence> {
  const token = randomBytes(16).toString("hex");
  const server = createServer((socket) =>
    socket
      .on("error", () => undefined)
      .resume()
      .end(token),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The system gave no TCP port on 127.0.0.1.");
  return { proof: `${address.port} ${token}`, end: () => void server.close() };
}

/** Whether who gave the proof is there. Somebody who is too busy to answer counts as there. */
export async function isPresent(proof: string): Promise<boolean> {
  const [port, token] = proof.split(" ");
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port: Number(port), timeout: ANSWER_TIMEOUT_MS });
    let received = "";
    socket
      .on("data", (chunk) => (received += chunk.toString()))
      .once("error", () => resolve(false))
      .once("close", () => resolve(received === token))
      .once("timeout", () => {
        resolve(true);
        socket.destroy();
      });
  });
}
