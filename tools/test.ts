import { findRedisServer, installRedis } from "@runtime-cloud/local-servers/redis-server";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

requireRedis();
runJest(process.argv.slice(2));

function requireRedis(): void {
  const given = process.env["TEST_REDIS_URL"] ?? process.env["REDIS_URL"];
  if (given !== undefined || findRedisServer() !== undefined) return;
  try {
    installRedis((line) => console.log(`  ${line}`));
  } catch (error) {
    console.error(`The tests need a real Redis. ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
}

function runJest(args: string[]): void {
  const flags = ["--experimental-vm-modules", "--disable-warning=ExperimentalWarning"];
  const jest = spawn(process.execPath, [...flags, "node_modules/jest/bin/jest.js", ...args], {
    cwd: root,
    stdio: "inherit",
  });
  // A terminal's Ctrl-C reaches Jest by itself; what is sent to us alone is passed on.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => jest.kill("SIGTERM"));
  jest.on("exit", (code) => (process.exitCode = code ?? 1));
}
