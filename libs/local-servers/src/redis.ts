import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { freePort } from "./ports.ts";
import { findRedisServer, redisInstallAdvice } from "./redis-server.ts";
import { startSupervised, type SupervisedProcess } from "./supervised-process.ts";
import { until } from "./until.ts";

const START_TIMEOUT_MS = 10_000;
const STOP_GRACE_MS = 5_000;
const PING_TIMEOUT_MS = 1_000;
const START_ATTEMPTS = 3;

export interface RedisOptions {
  /** Keeps its data here, written at least each second. Absent: nothing outlives the server. */
  readonly dataDir?: string;
  /** A free one when absent. Given together with `password`, a new server takes the place of one that was killed. */
  readonly port?: number;
  readonly password?: string;
  readonly log?: (line: string) => void;
}

export interface LocalRedis {
  /** `redis://:<password>@127.0.0.1:<port>`. */
  readonly url: string;
  readonly port: number;
  readonly password: string;
  /** Ends the server in good order. */
  stop(): Promise<void>;
  /** Ends the server as a crash would: at once, nothing written. */
  kill(): Promise<void>;
}

/**
 * Starts a private Redis or Valkey of the PATH on 127.0.0.1, with a password and `noeviction`.
 *
 * @throws Error that says what to install when the PATH has neither.
 */
export async function startRedis(options: RedisOptions = {}): Promise<LocalRedis> {
  const command = findRedisServer();
  if (command === undefined) throw new Error(redisInstallAdvice);
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
  const server = await start(command, folder, configuration(folder, port, password, scratch === undefined), scratch);
  await until("Redis to answer", START_TIMEOUT_MS, async () => {
    return server.hasEnded() || (await answers(port, password)) || undefined;
  });
  if (server.hasEnded()) {
    const said = readFileSync(join(folder, "redis.log"), "utf8").trim();
    if (scratch !== undefined) rmSync(scratch, { recursive: true });
    if (last) throw new Error(`${command} ended at its start and says:\n${said}`);
    return undefined;
  }
  const kill = async () => {
    await server.kill();
    if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true });
  };
  const url = `redis://:${password}@127.0.0.1:${port}`;
  return { url, port, password, stop: () => server.stop(), kill };
}

/** The password is in a file that only we can read: arguments are everyone's to see. */
function configuration(folder: string, port: number, password: string, keepsData: boolean): string {
  return [
    "bind 127.0.0.1",
    `port ${port}`,
    `requirepass ${password}`,
    `dir "${folder}"`,
    "maxmemory-policy noeviction",
    'save ""',
    `appendonly ${keepsData ? "yes" : "no"}`,
    "appendfsync everysec",
    "daemonize no",
  ].join("\n");
}

async function start(
  command: string,
  folder: string,
  config: string,
  scratch: string | undefined,
): Promise<SupervisedProcess> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, "redis.conf");
  writeFileSync(file, `${config}\n`, { mode: 0o600 });
  return startSupervised({
    command,
    args: [file],
    logFile: join(folder, "redis.log"),
    stopSignal: "SIGTERM",
    killSignal: "SIGKILL",
    graceMs: STOP_GRACE_MS,
    scratch,
  });
}

async function answers(port: number, password: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect({ host: "127.0.0.1", port, timeout: PING_TIMEOUT_MS });
    const end = (answer: boolean) => {
      socket.destroy();
      done(answer);
    };
    let received = "";
    socket.once("connect", () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    socket
      .once("error", () => end(false))
      .once("close", () => end(false))
      .once("timeout", () => end(false));
    socket.on("data", (chunk) => {
      received += chunk.toString();
      if (received.startsWith("-")) end(false);
      if (received.includes("+PONG")) end(true);
    });
  });
}
