import { setTimeout as wait } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { testDatabase, type TestDatabase } from "../_support/database.ts";
import { type EventPath, openEventPath } from "../_support/event-path.ts";
import { testRedis } from "../_support/redis.ts";
import { startTcpProxy, type TcpProxy } from "../_support/tcp-proxy.ts";

const TEST_MS = 120_000;
const WRITERS = 4;
const CHANGES = 30;
/** Made while Redis is silent, by writers that don't wait for it. */
const MEANWHILE = 60;
/** Longer than a command may take, so that its caller gives up. */
const SILENT_MS = 6_000;
const RECOVERY_MS = 60_000;

let database: TestDatabase;
let proxy: TcpProxy;
let path: EventPath;

beforeEach(async () => {
  database = await testDatabase("execution-capacity");
  const { url, prefix } = testRedis();
  proxy = await startTcpProxy(Number(new URL(url).port));
  path = await openEventPath({ databaseUrl: database.url, redis: { url: proxy.through(url), prefix } });
});

afterEach(async () => {
  proxy.forward();
  await path.close();
  await proxy.close();
  await database.drop();
});

test.each([
  ["whose replies come late", () => proxy.holdReplies()],
  ["whose replies vanish, on connections that stay open", () => proxy.swallowReplies()],
])(
  "a Redis %s holds up no writer, and every event takes effect once it answers again",
  async (_what, fall) => {
    const load = path.load(WRITERS);
    await load.acknowledged(CHANGES);
    fall();
    await Promise.all([load.acknowledged(MEANWHILE), wait(SILENT_MS)]);
    proxy.forward();
    await load.acknowledged(CHANGES);
    await load.stop();
    expect(await path.broken(RECOVERY_MS)).toEqual([]);
  },
  TEST_MS,
);
