import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import type pg from "pg";
import { announceEnvironment } from "../_support/announced-environment.ts";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import { causedTwice, notTakenOnce } from "../_support/event-invariants.ts";
import { countRows, lockTable } from "../_support/rows.ts";

const START_MS = 60_000;
const TEST_MS = 180_000;

let deployment: TestDeployment;

beforeAll(async () => {
  deployment = await deploy(["runtime-environment"]);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test(
  "events whose service is killed amid a handler's transaction, and between an effect and its acknowledgement, come " +
    "again, and each takes effect once",
  async () => {
    const { services, stage, pauseQueues, resumeQueues, inboxIsDone } = deployment;
    const database = stage.databases["runtime-environment"];
    const created = (id: string) => countRows(database, "transition WHERE event = 'create' AND aggregate_id = $1", id);

    const release = await lockTable(database, "inventory");
    const amid = await announceEnvironment(stage);
    await inTransaction(database);
    await services.kill("runtime-environment");
    await release();
    expect(await countRows(database, "inbox_receipt")).toBe(0);
    expect(await created(amid)).toBe(0);

    // A killed worker's jobs come again after a while, so both are waited for together.
    await services.start("runtime-environment");
    const releaseAgain = await lockTable(database, "inventory");
    const after = await announceEnvironment(stage);
    await inTransaction(database);
    await pauseQueues();
    await releaseAgain();
    await eventually("the effect", async () => ((await created(after)) === 1 ? true : undefined));
    await services.kill("runtime-environment");
    await resumeQueues();

    await services.start("runtime-environment");
    await inboxIsDone("RuntimeEnvironmentService");
    const events = stage.controlPlane.announced().map(({ id }) => id);
    expect(events).toHaveLength(2);
    expect(await notTakenOnce(database, { handler: "StartInventory", events })).toEqual([]);
    expect(await causedTwice(database)).toEqual([]);
    expect([await created(amid), await created(after)]).toEqual([1, 1]);
  },
  TEST_MS,
);

/** Resolves when a handler waits for the table that is locked, to write what is new; a sweep changes what is there. */
async function inTransaction(database: pg.Pool): Promise<void> {
  const waiting = `pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND query ILIKE 'INSERT INTO %inventory%'`;
  await eventually("a handler in its transaction", async () => (await countRows(database, waiting)) > 0 || undefined);
}
