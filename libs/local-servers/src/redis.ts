import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { withFolderLock } from "./folder-lock.ts";
import { freePort } from "./ports.ts";
import { lastRedisAccess, writeRedisConfiguration, type RedisAccess } from "./redis-configuration.ts";
import { probeRedis } from "./redis-probe.ts";
import { findRedisServer, redisInstallAdvice } from "./redis-server.ts";
import { startSupervised } from "./supervised-process.ts";
import { until } from "./until.ts";

const START_TIMEOUT_MS = 10_000;
const STOP_GRACE_MS = 5_000;
const START_ATTEMPTS = 3;
const LOCK_TIMEOUT_MS = START_ATTEMPTS * START_TIMEOUT_MS;

export interface RedisOptions {
  /** Keeps its data here, written at least each second, by one server at a time. Absent: nothing outlives the server. */
  readonly dataDir?: string;
  /** A free one when absent. Given together with `password`, a new server takes the place of one that was killed. */
  readonly port?: number;
  readonly password?: string;
  readonly log?: (line: string) => void;
}

export interface LocalRedis {
  /** `redis://default:<password>@127.0.0.1:<port>`. */
  readonly url: string;
  readonly port: number;
  readonly password: string;
  /** Ends the server in good order; does nothing when another start's server was joined. */
  stop(): Promise<void>;
  /** Ends the server as a crash would: at once, nothing written. Leaves a joined server alone too. */
  kill(): Promise<void>;
}

/**
 * Starts a private Redis or Valkey of the PATH on 127.0.0.1, with a password and `noeviction`. A
 * server that already runs on the same `dataDir` is joined instead, also when two start at once; it ends with the
 * process that started it.
 *
 * @throws Error that says what to install when the PATH has neither.
 * @throws Error when the server to join has another port or password than the given one.
 */
export async function startRedis(options: RedisOptions = {}): Promise<LocalRedis> {
  const command = findRedisServer();
  if (command === undefined) throw new Error(redisInstallAdvice);
  if (options.dataDir === undefined) return startNew(command, options);
  const folder = resolve(options.dataDir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return withFolderLock(folder, LOCK_TIMEOUT_MS, async () => {
    return (await joinRunning(folder, options)) ?? (await startNew(command, options));
  });
}

/** Undefined when no server runs on the folder. */
async function joinRunning(folder: string, options: RedisOptions): Promise<LocalRedis | undefined> {
  const access = lastRedisAccess(folder);
  if (access === undefined) return undefined;
  const { port, password } = access;
  const running = `the Redis that runs on ${folder}`;
  const what = `${running}, on port ${port}; if another program has that port, remove ${join(folder, "redis.conf")}`;
  const condition = await until(what, START_TIMEOUT_MS, async () => {
    const now = await probeRedis(access);
    return now === "unclear" ? undefined : now;
  });
  if (condition === "gone") return undefined;
  if (port !== (options.port ?? port) || password !== (options.password ?? password))
    throw new Error(`port or password is not that of ${running}, on port ${port}: stop that one, or give neither.`);
  const leave = () => Promise.resolve();
  return { url: urlOf(access), port, password, stop: leave, kill: leave };
}

async function startNew(command: string, options: RedisOptions): Promise<LocalRedis> {
  const attempts = options.port === undefined ? START_ATTEMPTS : 1;
  for (let attempt = 1; ; attempt++) {
    const redis = await attemptStart(command, options, options.port ?? (await freePort()), attempt === attempts);
    if (redis !== undefined) return redis;
    options.log?.("Redis did not get its port; trying another one");
  }
}

async function attemptStart(
  command: string,
  { dataDir, password = randomBytes(24).toString("hex") }: RedisOptions,
  port: number,
  last: boolean,
): Promise<LocalRedis | undefined> {
  const folder = dataDir === undefined ? mkdtempSync(join(tmpdir(), "runtime-cloud-redis-")) : resolve(dataDir);
  const scratch = dataDir === undefined ? folder : undefined;
  const logFile = join(folder, "redis.log");
  const access = { port, password };
  const server = await startSupervised({
    command,
    args: [writeRedisConfiguration(folder, access, scratch === undefined)],
    logFile,
    stopSignal: "SIGTERM",
    killSignal: "SIGKILL",
    graceMs: STOP_GRACE_MS,
    scratch,
  });
  await until("Redis to answer", START_TIMEOUT_MS, async () => {
    return server.hasEnded() || (await probeRedis(access)) === "ready" || undefined;
  });
  if (server.hasEnded()) {
    const said = readFileSync(logFile, "utf8").trim();
    if (scratch !== undefined) rmSync(scratch, { recursive: true });
    if (last) throw new Error(`${command} ended at its start and says:\n${said}`);
    return undefined;
  }
  const kill = async () => {
    await server.kill();
    if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true });
  };
  return { url: urlOf(access), port, password, stop: () => server.stop(), kill };
}

function urlOf({ port, password }: RedisAccess): string {
  return `redis://default:${password}@127.0.0.1:${port}`;
}
