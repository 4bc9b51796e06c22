import { findRedisServer, installRedis } from "@runtime-cloud/local-servers/redis-server";
import { spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterSecondTry, readTestResult, type TestResult } from "./test-result.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const RESULT = join(root, ".data/test-result.json");
/** The last run's line, for who prints it after everything else. */
const COUNTS = join(root, ".data/test-counts");
/** More than these didn't fail for want of time. */
const MOST_TRIED_AGAIN = 10;

requireRedis();
let stopping = false;
process.on("SIGINT", () => (stopping = true));
await test(process.argv.slice(2));

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

/** Ends with one line, `N passed, N failed`. */
async function test(args: readonly string[]): Promise<void> {
  process.exitCode = await runJest(args);
  let result = readTestResult(RESULT);
  if (result && canTryAgain(result)) {
    const paths = result.failedFiles.map(({ path }) => path);
    console.log(`\nTried again, one by one:\n${paths.map((path) => `  ${path}`).join("\n")}`);
    process.exitCode = await runJest(["--maxWorkers=1", "--runTestsByPath", ...paths]);
    const second = readTestResult(RESULT);
    if (second) result = afterSecondTry(result, second);
  }
  if (!result) return;
  const counts = `${result.passed} passed, ${result.failed} failed\n`;
  writeFileSync(COUNTS, counts);
  process.stdout.write(counts);
}

/** Only where it's asked for: what takes the time of real processes may fail for want of it on a shared machine. */
function canTryAgain({ failedFiles }: TestResult): boolean {
  const wanted = process.env["TEST_RETRIES"] === "1" && !stopping;
  return wanted && failedFiles.length > 0 && failedFiles.length <= MOST_TRIED_AGAIN;
}

function runJest(args: readonly string[]): Promise<number> {
  rmSync(RESULT, { force: true });
  const flags = ["--experimental-vm-modules", "--disable-warning=ExperimentalWarning"];
  const jest = spawn(process.execPath, [...flags, "node_modules/jest/bin/jest.js", ...args], {
    cwd: root,
    stdio: "inherit",
  });
  // A terminal's Ctrl-C reaches Jest by itself; what is sent to us alone is passed on.
  process.once("SIGTERM", () => {
    stopping = true;
    jest.kill("SIGTERM");
  });
  return new Promise((resolve) => jest.on("exit", (code) => resolve(code ?? 1)));
}
