import { createServer } from "node:net";
import { once } from "node:events";
import { afterEach, expect, test } from "@jest/globals";
import { serviceProbes } from "@runtime-cloud/eventing/service-probes";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { createHealth } from "@runtime-cloud/service-kit/health";
import pg from "pg";
import { emptyDatabase, testDatabase } from "../_support/database.ts";

const MIGRATIONS = "migrations (npm run migrate -- deploy)";
let opened: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of opened.reverse()) await close();
  opened = [];
});

async function failingAt(connectionString: string): Promise<string[]> {
  const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 2_000 });
  opened.push(() => pool.end());
  return (await createHealth({ services: [], probes: serviceProbes(pool) }).readiness()).failing;
}

test("a migrated database lacks nothing", async () => {
  const { url, drop } = await testDatabase("execution-capacity");
  opened.push(drop);
  expect(await failingAt(url)).toEqual([]);
});

test("a database without tables is told to be migrated", async () => {
  const { url, drop } = await emptyDatabase();
  opened.push(drop);
  expect(await failingAt(url)).toEqual([MIGRATIONS]);
});

test("a database that is away, or doesn't answer, isn't told to be migrated", async () => {
  expect(await failingAt(`postgres://127.0.0.1:${await freePort()}/away`)).toEqual(["database"]);

  const silent = createServer((socket) => void socket.resume().on("error", () => socket.destroy()));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  opened.push(() => new Promise((resolve) => silent.close(resolve)));
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : undefined;
  expect(await failingAt(`postgres://127.0.0.1:${port}/silent`)).toEqual(["database"]);
});
