import { until } from "@runtime-cloud/local-servers/until";
import { expect, test } from "@jest/globals";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("held-servers.ts", import.meta.url));
const STOP_TIMEOUT_MS = 15_000;

test.each(["SIGKILL", "SIGINT"] as const)("the servers end when their starter is ended by %s", async (signal) => {
  const starter = spawn(process.execPath, ["--import", "tsx", PROGRAM], { stdio: ["ignore", "pipe", "inherit"] });
  const ports = await printedPorts(createInterface(starter.stdout));
  expect(await Promise.all(ports.map(isOpen))).toEqual([true, true]);

  starter.kill(signal);
  await once(starter, "exit");

  for (const port of ports) {
    await until(`port ${port} to close`, STOP_TIMEOUT_MS, async () => !(await isOpen(port)) || undefined);
  }
});

async function printedPorts(lines: ReturnType<typeof createInterface>): Promise<number[]> {
  const line = await new Promise<string>((resolve) => lines.once("line", resolve));
  return [...line.matchAll(/127\.0\.0\.1:(\d+)/g)].map((match) => Number(match[1]));
}

async function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
