import { startRedis } from "@runtime-cloud/local-servers/redis";
import { findRedisServer } from "@runtime-cloud/local-servers/redis-server";
import { afterEach, expect, test } from "@jest/globals";
import { Redis } from "ioredis";

const path = process.env["PATH"];

afterEach(() => {
  process.env["PATH"] = path;
});

test("never evicts, wants its password and listens on loopback alone", async () => {
  const redis = await startRedis();
  try {
    const [policy, bind] = await ask(redis.url, async (client) => [
      await client.config("GET", "maxmemory-policy"),
      await client.config("GET", "bind"),
    ]);
    expect([policy, bind].flat(2).join(" ")).toMatch(/noeviction.*127\.0\.0\.1/);
    await expect(ask(`redis://127.0.0.1:${redis.port}`, (client) => client.ping())).rejects.toThrow("NOAUTH");
  } finally {
    await redis.stop();
  }
});

test("a new server takes the place of one that was killed, with nothing of its data", async () => {
  const first = await startRedis();
  await ask(first.url, (client) => client.set("key", "value"));
  await first.kill();

  const second = await startRedis({ port: first.port, password: first.password });
  try {
    expect(second.url).toBe(first.url);
    expect(await ask(second.url, (client) => client.get("key"))).toBeNull();
  } finally {
    await second.stop();
  }
});

test("says what the server said when a given port is taken", async () => {
  const first = await startRedis();
  try {
    await expect(startRedis({ port: first.port })).rejects.toThrow("Address already in use");
  } finally {
    await first.stop();
  }
});

test("without a server on the PATH it says exactly what to install", async () => {
  process.env["PATH"] = "/nowhere";
  expect(findRedisServer()).toBeUndefined();
  await expect(startRedis()).rejects.toThrow(/sudo apt install redis-server.*dnf install.*brew install redis/);
});

async function ask<T>(url: string, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { maxRetriesPerRequest: 1 });
  client.on("error", () => undefined);
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}
