import { execFileSync } from "node:child_process";
import { accessSync, constants, existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

const PROGRAMS = ["redis-server", "valkey-server"];
/** Debian asks this script whether an installed service may be started; exit code 101 says no. */
const START_POLICY = "/usr/sbin/policy-rc.d";
const INSTALL_TIMEOUT_MS = 300_000;

/** What to tell somebody whose PATH has neither. */
export const redisInstallAdvice =
  "Install Redis 7 or Valkey so that `redis-server` or `valkey-server` is on the PATH: `sudo apt install redis-server` " +
  "(Debian, Ubuntu), `sudo dnf install valkey` (Fedora), `brew install redis` (macOS); or name a server of your own.";

/** The path of `redis-server`, else of `valkey-server`; undefined when the PATH has neither. */
export function findRedisServer(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return PROGRAMS.flatMap((program) => folders.map((folder) => join(folder, program))).find(isExecutable);
}

/**
 * Installs Redis by apt, without starting the system's service.
 *
 * @throws Error that says exactly what to install where this isn't Debian or we aren't root.
 */
export function installRedis(log: (line: string) => void): string {
  if (process.getuid?.() !== 0 || !existsSync("/etc/debian_version")) throw new Error(redisInstallAdvice);
  log("Installing redis-server by apt");
  withoutServiceStart(() => {
    apt("update");
    apt("install", "--yes", "--no-install-recommends", "redis-server");
  });
  const installed = findRedisServer();
  if (installed === undefined)
    throw new Error(`apt installed redis-server, but it isn't on the PATH. ${redisInstallAdvice}`);
  return installed;
}

function withoutServiceStart(install: () => void): void {
  const ours = !existsSync(START_POLICY);
  if (ours) writeFileSync(START_POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    install();
  } finally {
    if (ours) rmSync(START_POLICY, { force: true });
  }
}

function apt(...args: string[]): void {
  try {
    execFileSync("apt-get", ["--quiet", ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: INSTALL_TIMEOUT_MS,
    });
  } catch (error) {
    throw new Error(`\`apt-get ${args.join(" ")}\` failed: ${String(error)}\n${redisInstallAdvice}`, { cause: error });
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
