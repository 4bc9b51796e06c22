import { connect } from "node:net";

import type { RedisAccess } from "./redis-configuration.ts";

const PING_TIMEOUT_MS = 1_000;

/**
 * - `ready`: it takes the password and answers.
 * - `unclear`: somebody is at the port, but is loading its data, overloaded, ending or silent.
 * - `gone`: nobody is there, or another program that doesn't know the password.
 */
export type RedisCondition = "ready" | "unclear" | "gone";

/** How the server is that was started with this port and password. */
export async function probeRedis({ port, password }: RedisAccess): Promise<RedisCondition> {
  return new Promise((done) => {
    const socket = connect({ host: "127.0.0.1", port, timeout: PING_TIMEOUT_MS });
    const end = (condition: RedisCondition) => {
      socket.destroy();
      done(condition);
    };
    let received = "";
    socket.once("connect", () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    socket
      .once("error", (error) => end("code" in error && error.code === "ECONNREFUSED" ? "gone" : "unclear"))
      .once("close", () => end("unclear"))
      .once("timeout", () => end("unclear"));
    socket.on("data", (chunk) => {
      received += chunk.toString();
      const condition = conditionBy(received);
      if (condition !== undefined) end(condition);
    });
  });
}

/** Undefined while more has to come. */
function conditionBy(received: string): RedisCondition | undefined {
  if (received.startsWith("-ERR max number of clients")) return "unclear";
  if (!received.startsWith("+")) return "gone";
  if (received.includes("+PONG")) return "ready";
  return received.includes("\n-") ? "unclear" : undefined;
}
