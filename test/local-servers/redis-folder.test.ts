import { startRedis } from "@runtime-cloud/local-servers/redis";
import { until } from "@runtime-cloud/local-servers/until";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { Redis } from "ioredis";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const HOLDER = fileURLToPath(new URL("held-redis.ts", import.meta.url));
const STOP_TIMEOUT_MS = 15_000;

let home: string;
let dataDir: string;
let holders: ChildProcess[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "runtime-cloud-test-"));
  dataDir = join(home, "redis");
  holders = [];
});

afterEach(async () => {
  await Promise.all(holders.map(killed));
  rmSync(home, { recursive: true });
});

test("keeps its data from one start to the next", async () => {
  const first = await startRedis({ dataDir });
  await ask(first.url, (client) => client.set("key", "value"));
  await first.stop();

  const second = await startRedis({ dataDir });
  expect(await ask(second.url, (client) => client.get("key"))).toBe("value");
  await second.stop();
});

test.each(["stop", "kill"] as const)(
  "joins the server of its folder, and its %s leaves that one alone",
  async (end) => {
    const first = await startRedis({ dataDir });
    try {
      const configuration = readFileSync(join(dataDir, "redis.conf"), "utf8");
      const second = await startRedis({ dataDir });
      expect(second.url).toBe(first.url);
      await ask(second.url, (client) => client.set("key", "value"));

      await second[end]();
      expect(await ask(first.url, (client) => client.get("key"))).toBe("value");
      expect(readFileSync(join(dataDir, "redis.conf"), "utf8")).toBe(configuration);
    } finally {
      await first.stop();
    }
  },
);

test("starts at once, here and in other processes, end up with one server", async () => {
  const [ours, ...others] = await Promise.all([
    Promise.all(Array.from({ length: 4 }, () => startRedis({ dataDir }))),
    held(),
    held(),
  ]);
  const urls = [...ours.map(({ url }) => url), ...others];
  expect(new Set(urls).size).toBe(1);
  await Promise.all(ours.map((redis) => redis.stop()));
});

test("starts at once after a crash end up with one new server that has the data", async () => {
  const url = await held();
  await ask(url, (client) => client.set("key", "value"));
  await ask(url, (client) => client.config("SET", "appendfsync", "always"));
  await Promise.all(holders.map(killed));
  await until("the server to end", STOP_TIMEOUT_MS, async () => (await isGone(url)) || undefined);

  const servers = await Promise.all(Array.from({ length: 3 }, () => startRedis({ dataDir })));
  try {
    expect(new Set(servers.map((server) => server.url)).size).toBe(1);
    expect(servers[0]?.url).not.toBe(url);
    expect(await ask(servers[0]?.url ?? "", (client) => client.get("key"))).toBe("value");
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});

test.each([
  ["another Redis", () => startRedis({ port: portOfLast(), password: "other" })],
  ["another program", () => webServer(portOfLast())],
])("starts anew where the port of its last server is now that of %s", async (_who, take) => {
  const crashed = await startRedis({ dataDir });
  await crashed.kill();
  const other = await take();
  try {
    const redis = await startRedis({ dataDir });
    expect(redis.port).not.toBe(crashed.port);
    expect(await ask(redis.url, (client) => client.ping())).toBe("PONG");
    await redis.stop();
  } finally {
    await other.stop();
  }
});

test("a copy of a folder in use gets a server of its own", async () => {
  const first = await startRedis({ dataDir });
  const copy = join(home, "copy");
  cpSync(dataDir, copy, { recursive: true });
  const second = await startRedis({ dataDir: copy });
  try {
    expect(second.url).not.toBe(first.url);
  } finally {
    await Promise.all([first.stop(), second.stop()]);
  }
});

test("refuses a port or password that is not that of the running server", async () => {
  const first = await startRedis({ dataDir });
  try {
    await expect(startRedis({ dataDir, port: first.port + 1 })).rejects.toThrow("stop that one, or give neither");
    await expect(startRedis({ dataDir, password: "other" })).rejects.toThrow("stop that one, or give neither");
    const same = await startRedis({ dataDir, port: first.port, password: first.password });
    expect(same.url).toBe(first.url);
  } finally {
    await first.stop();
  }
});

/** The URL of another process's server, or of the one it joined. */
async function held(): Promise<string> {
  const holder = spawn(process.execPath, ["--import", "tsx", HOLDER, dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  holders.push(holder);
  return new Promise((resolve) => createInterface(holder.stdout).once("line", resolve));
}

async function killed(holder: ChildProcess): Promise<void> {
  if (holder.exitCode !== null || holder.signalCode !== null) return;
  holder.kill("SIGKILL");
  await once(holder, "exit");
}

function portOfLast(): number {
  return Number(/^port (\d+)$/m.exec(readFileSync(join(dataDir, "redis.conf"), "utf8"))?.[1]);
}

async function webServer(port: number) {
  const server = createServer((socket) =>
    socket
      .on("error", () => undefined)
      .resume()
      .end("HTTP/1.1 400 Bad Request\r\n\r\n"),
  );
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const stop = async () => {
    server.close();
    await once(server, "close");
  };
  return { stop };
}

async function isGone(url: string): Promise<boolean> {
  return ask(url, (client) => client.ping()).then(
    () => false,
    () => true,
  );
}

async function ask<T>(url: string, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { maxRetriesPerRequest: 0 });
  client.on("error", () => undefined);
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}
