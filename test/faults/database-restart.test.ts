import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { databaseUrl, ensureDatabase } from "@runtime-cloud/local-servers/databases";
import { type LocalPostgres, startPostgres } from "@runtime-cloud/local-servers/postgres";
import { runningPostmaster } from "@runtime-cloud/local-servers/postmaster";
import { until } from "@runtime-cloud/local-servers/until";
import { deployMigrations } from "@runtime-cloud/migrations/deploy";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEventPath } from "../_support/event-path.ts";
import { testRedis } from "../_support/redis.ts";
import { startTcpProxy, type TcpProxy } from "../_support/tcp-proxy.ts";

const START_MS = 60_000;
const TEST_MS = 120_000;
const SERVICE = "execution-capacity";
const CRASHES = 2;
const WRITERS = 4;
const CHANGES = 40;

let home: string;
let postgres: LocalPostgres;
/** Gives the server one address, though it takes a free port at each start. */
let proxy: TcpProxy;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "runtime-cloud-restart-"));
  // Where we are root, PostgreSQL runs as another account, which must be able to pass.
  chmodSync(home, 0o755);
  postgres = await start();
  await ensureDatabase(postgres.url("postgres"), SERVICE);
  await deployMigrations({ service: SERVICE, databaseUrl: postgres.url(SERVICE) });
  proxy = await startTcpProxy(portOf(postgres));
}, START_MS);

afterAll(async () => {
  await proxy.close();
  await postgres.stop();
  rmSync(home, { recursive: true });
}, START_MS);

test(
  "a PostgreSQL that crashes under load loses no acknowledged change, and no event or effect of one",
  async () => {
    const url = databaseUrl(proxy.through(postgres.url("postgres")), SERVICE);
    const path = await openEventPath({ databaseUrl: url, redis: testRedis() });
    try {
      const load = path.load(WRITERS);
      for (let crash = 0; crash < CRASHES; crash += 1) {
        await load.acknowledged(CHANGES);
        await crashAndRestart();
      }
      await load.acknowledged(CHANGES);
      await load.stop();
      expect(await path.broken()).toEqual([]);
    } finally {
      await path.close();
    }
  },
  TEST_MS,
);

/** Everything that it acknowledges outlives a crash. */
function start(): Promise<LocalPostgres> {
  return startPostgres({ dataDir: join(home, "postgres"), durable: true });
}

/** An immediate shutdown: every connection ends, nothing is written, the next start recovers from the log. */
async function crashAndRestart(): Promise<void> {
  const data = join(home, "postgres", "data");
  const running = runningPostmaster(data);
  if (!running) throw new Error("PostgreSQL isn't running");
  process.kill(running.pid, "SIGQUIT");
  await until("PostgreSQL's end", START_MS, () => runningPostmaster(data) === undefined || undefined);
  await postgres.stop();
  postgres = await start();
  proxy.redirect(portOf(postgres));
}

function portOf(server: LocalPostgres): number {
  return Number(new URL(server.url("postgres")).port);
}
