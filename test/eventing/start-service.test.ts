import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startService } from "@runtime-cloud/eventing/start-service";
import { executionCapacity } from "@runtime-cloud/execution-capacity/definition";
import { freePort, isFree } from "@runtime-cloud/local-servers/ports";
import { until } from "@runtime-cloud/local-servers/until";
import { ConfigError, readConfig } from "@runtime-cloud/service-kit/config";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { testRedis } from "../_support/redis.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

let database: ServiceDatabase;
let folder: string;

beforeAll(async () => {
  database = await openServiceDatabase();
  folder = await mkdtemp(join(tmpdir(), "start-service-"));
});
afterAll(async () => {
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

function start(changes: Record<string, string>) {
  const redis = testRedis();
  const config = readConfig(executionCapacity.settings, {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    QUEUE_PREFIX: redis.prefix,
    SUBSCRIBERS: "ExecutionCapacityService",
    LOCAL_ISSUER_FILE: join(folder, "issuer.json"),
    PORT: "0",
    ADMIN_PORT: "0",
    ...changes,
  });
  return startService(executionCapacity, config, silentLogger());
}

async function problemsOf(changes: Record<string, string>): Promise<readonly string[]> {
  const outcome = await start(changes).catch((error: unknown) => error);
  if (outcome instanceof ConfigError) return outcome.problems;
  throw new Error("the start was expected to be refused with ConfigError", { cause: outcome });
}

async function listener(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("a TCP server has a port");
  return { server, port: address.port };
}

const noConnectionLeft = () =>
  until("every connection of the service to be closed", 15_000, async () => {
    const { rowCount } = await database.pool.query(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1",
      [executionCapacity.name],
    );
    return rowCount === 0 || undefined;
  });

test.each(["PORT", "ADMIN_PORT"])(
  "a taken %s is a problem of the settings, and what was started is stopped",
  async (variable) => {
    const { server, port } = await listener();
    const apiPort = await freePort();
    expect(await problemsOf({ PORT: String(apiPort), [variable]: String(port) })).toEqual([
      `${variable}=${port} is taken on 127.0.0.1: stop what listens there, or set another`,
    ]);
    await noConnectionLeft();
    expect(await isFree(apiPort)).toBe(true);
    server.close();
  },
);

test("a HOST that isn't this machine's is a problem of the settings", async () => {
  const auth = { AUTH_ISSUER: "https://id", AUTH_AUDIENCE: "runtime-cloud", AUTH_JWKS_URL: "https://id/jwks" };
  const HOST = "192.0.2.1"; // RFC 5737: nobody's
  expect(await problemsOf({ ...auth, HOST })).toEqual([
    `HOST="${HOST}" is no address of this machine: set one that is, as 127.0.0.1`,
  ]);
  await noConnectionLeft();
});

test("a subscriber that doesn't exist is refused before the queues are touched", async () => {
  const { server, port } = await listener();
  let connections = 0;
  server.on("connection", (socket) => {
    connections += 1;
    socket.destroy();
  });
  const [problem, ...others] = await problemsOf({
    SUBSCRIBERS: "ExecutionCapacityService,ExecutionCapacity",
    REDIS_URL: `redis://127.0.0.1:${port}`,
  });
  expect(problem).toMatch(
    /^SUBSCRIBERS names ExecutionCapacity, which no event is delivered to; the names that exist: .*RuntimeEnvironmentService/,
  );
  expect(others).toEqual([]);
  expect(connections).toBe(0);
  server.close();
});

test("stops in good order when asked", async () => {
  const running = await start({});
  expect((await fetch(`${running.adminUrl}/healthz`)).ok).toBe(true);
  await running.stop();
  await noConnectionLeft();
  expect(await isFree(Number(new URL(running.url).port))).toBe(true);
  expect(await isFree(Number(new URL(running.adminUrl).port))).toBe(true);
});
