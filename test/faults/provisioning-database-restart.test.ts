import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { databaseUrl, ensureDatabase } from "@runtime-cloud/local-servers/databases";
import { type LocalPostgres, startPostgres } from "@runtime-cloud/local-servers/postgres";
import { runningPostmaster } from "@runtime-cloud/local-servers/postmaster";
import { until } from "@runtime-cloud/local-servers/until";
import { deployMigrations } from "@runtime-cloud/migrations/deploy";
import { engineChildren } from "../_support/provisioning-children.ts";
import { deployProvisioning, type ProvisioningDeployment } from "../_support/provisioning-deployment.ts";
import { type ProvisioningRuns, runsOf } from "../_support/provisioning-runs.ts";
import { secretsLeftIn } from "../_support/provisioning-secrets.ts";
import { startTcpProxy, type TcpProxy } from "../_support/tcp-proxy.ts";

const START_MS = 120_000;
const TEST_MS = 300_000;
const WITHIN_MS = 120_000;
const SERVICE = "iac-provisioning";
const ADDRESSES = ["terraform_data.first", "terraform_data.second", "terraform_data.third"];

let home: string;
let postgres: LocalPostgres;
/** Gives the server one address, though it takes a free port at each start. */
let proxy: TcpProxy;
let deployment: ProvisioningDeployment;
let runs: ProvisioningRuns;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "provisioning-postgres-"));
  // Where we are root, PostgreSQL runs as another account, which must be able to pass.
  chmodSync(home, 0o755);
  postgres = await startPostgres({ dataDir: join(home, "postgres"), durable: true });
  await ensureDatabase(postgres.url("postgres"), SERVICE);
  await deployMigrations({ service: SERVICE, databaseUrl: postgres.url(SERVICE) });
  proxy = await startTcpProxy(portOf(postgres));
  const url = databaseUrl(proxy.through(postgres.url("postgres")), SERVICE);
  deployment = await deployProvisioning({
    role: "all",
    database: { url, drop: () => Promise.resolve() },
  });
  runs = runsOf(deployment);
}, START_MS);
afterAll(async () => {
  await deployment.close();
  await proxy.close();
  await postgres.stop();
  rmSync(home, { recursive: true });
}, START_MS);

test(
  "an apply whose database restarts while the engine is at work goes on as if nothing had been",
  async () => {
    const environmentId = await deployment.environment();
    const quiet = await runs.plan(runs.steps(environmentId, "quiet"));
    await runs.worksOn(quiet, "terraform_data.second");
    await crash();
    await restart();
    await serviceIsBack(quiet);
    await runs.open("quiet");

    const { outputs } = await runs.reaches(quiet, "APPLIED");
    expect(outputs).toEqual({ steps: 3 });
    expect(await runs.receipt(quiet)).toEqual(Object.fromEntries(ADDRESSES.map((address) => [address, "APPLIED"])));
    expect(await runs.history(quiet)).toEqual(["create", "start", "plan", "startApply", "complete"]);
    expect(await runs.locks(environmentId)).toBe(0);
    await runs.nothingLives();
  },
  TEST_MS,
);

test(
  "an apply whose engine tells how it went while the database is away is recorded when that is back",
  async () => {
    const environmentId = await deployment.environment();
    const unheard = await runs.plan(runs.steps(environmentId, "unheard"));
    await runs.worksOn(unheard, "terraform_data.second");
    await crash();
    await runs.open("unheard");
    await until("the end of the second step", WITHIN_MS, () => stepsUnderWay().length === 0 || undefined);
    await restart();
    await serviceIsBack(unheard);

    const { outputs } = await runs.reaches(unheard, "APPLIED");
    expect(outputs).toEqual({ steps: 3 });
    expect(await runs.receipt(unheard)).toEqual(Object.fromEntries(ADDRESSES.map((address) => [address, "APPLIED"])));
    expect(await runs.history(unheard)).toEqual(["create", "start", "plan", "startApply", "complete"]);
    expect(await runs.locks(environmentId)).toBe(0);
    await runs.nothingLives();
    // What was recorded is what there is: nothing is left to do.
    const next = await runs.planAgain(unheard);
    await runs.reaches(next, "APPLIED");
    expect(await runs.receipt(next)).toEqual({});
  },
  TEST_MS,
);

test("leaves no secret in its tables, its queues, its log and its work directory", async () => {
  expect(await secretsLeftIn(deployment, { token: deployment.token })).toEqual([]);
});

/** An immediate shutdown: every connection ends, nothing is written. */
async function crash(): Promise<void> {
  const data = join(home, "postgres", "data");
  const running = runningPostmaster(data);
  if (!running) throw new Error("PostgreSQL isn't running");
  process.kill(running.pid, "SIGQUIT");
  await until("PostgreSQL's end", WITHIN_MS, () => runningPostmaster(data) === undefined || undefined);
  await postgres.stop();
}

async function restart(): Promise<void> {
  postgres = await startPostgres({ dataDir: join(home, "postgres"), durable: true });
  proxy.redirect(portOf(postgres));
}

/** The provisioners' shells. */
function stepsUnderWay() {
  return engineChildren(deployment.folders.work).filter(({ command }) => command.includes("-c"));
}

async function serviceIsBack(runId: string): Promise<void> {
  await until("the service to answer again", WITHIN_MS, () => runs.state(runId).catch(() => undefined));
}

function portOf(server: LocalPostgres): number {
  return Number(new URL(server.url("postgres")).port);
}
