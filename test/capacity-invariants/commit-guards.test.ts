import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import pg from "pg";
import { testDatabase, type TestDatabase } from "../_support/database.ts";
import { hearGuards, installCommitGuards } from "./commit-guards.ts";
import { brokenHistory, brokenNow } from "./invariants.ts";

let own: TestDatabase;
let database: pg.Pool;
let heard: string[];
let leaseId: string;

beforeAll(async () => {
  own = await testDatabase("execution-capacity");
  database = new pg.Pool({ connectionString: own.url, max: 1 });
  hearGuards(database, (broken) => void heard.push(broken));
  // Rows are written as they never come about: the database's own guards let no such thing in.
  for (const table of ["worker_pool", "quota", "capacity_lease"]) {
    await database.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
  }
  await installCommitGuards(database);
});
afterAll(async () => {
  await database.end();
  await own.drop();
});
/** One lease of two units in a pool of two, all of it as it should be. */
beforeEach(async () => {
  heard = [];
  leaseId = uuidv7();
  await database.query("TRUNCATE worker_pool, pool_label, quota, scope_usage, capacity_lease, queue_place, fair_share");
  await database.query(`BEGIN;
    INSERT INTO worker_pool (tenant_id, id, state, kind, scaling, current_size, desired_size, used)
    VALUES ('t', 'pool', 'ACTIVE', 'GENERAL', 'STATIC', 2, 2, 2);
    INSERT INTO scope_usage (tenant_id, project_id, used_runs) VALUES ('t', '', 2), ('t', 'p', 2);
    INSERT INTO quota (id, state, tenant_id, concurrent_runs, concurrent_sandboxes)
    VALUES ('${uuidv7()}', 'ACTIVE', 't', 2, 0);
    ${lease(leaseId, "ACTIVE")};
    COMMIT`);
  expect(heard).toEqual([]);
});

function lease(id: string, state: string): string {
  return `INSERT INTO capacity_lease (id, state, tenant_id, project_id, holder_kind, holder_id, resource, pool_tenant_id,
      pool_id, units, ttl_seconds, fencing_token, requested_at, granted_at, expires_at)
    VALUES ('${id}', '${state}', 't', 'p', 'Attempt', '${id}', 'RUNS', 't', 'pool', 2, 60, ${state === "ACTIVE" ? 1 : "NULL"},
      now() - interval '2 min', now() - interval '2 min', now() - interval '1 min')`;
}

test("a commit that leaves a counter and its leases apart is told of, whichever of them moved", async () => {
  for (const table of ["worker_pool", "capacity_lease", "scope_usage"]) {
    heard = [];
    const change = {
      worker_pool: "SET used = 1",
      capacity_lease: "SET state = 'RELEASED', ended_at = now()",
      scope_usage: "SET used_runs = used_runs + 1",
    }[table];
    await database.query(`BEGIN; UPDATE ${table} ${change}; COMMIT`);
    expect([table, heard]).toEqual([table, expect.arrayContaining([expect.stringMatching(/^I1: /)])]);
  }
});

test("what is put right before the commit is not told of", async () => {
  await database.query("BEGIN; UPDATE worker_pool SET used = 1; UPDATE worker_pool SET used = 2; COMMIT");
  expect(heard).toEqual([]);
});

test("a grant above a limit, or in a pool that grants nothing, is told of", async () => {
  const grant = async (before: string) => {
    heard = [];
    await database.query(`BEGIN; ${before}; ${lease(uuidv7(), "ACTIVE")}; UPDATE worker_pool SET used = used + 2;
      UPDATE scope_usage SET used_runs = used_runs + 2; COMMIT`);
    return heard.map((broken) => broken.replace(/[0-9a-f-]{36}/, "…"));
  };
  expect(await grant("UPDATE quota SET concurrent_runs = 10")).toEqual([
    "I2: lease … was granted in pool pool, which uses 4 of 2",
  ]);
  expect(await grant("UPDATE worker_pool SET current_size = 10, state = 'CORDONED'")).toEqual([
    "I10: lease … was granted in pool pool, which is CORDONED",
  ]);
  expect(await grant("UPDATE worker_pool SET state = 'ACTIVE'; UPDATE quota SET concurrent_runs = 7")).toEqual([
    "I2: lease … was granted to t/, which uses 8 RUNS of 7",
  ]);
});

test("a renewal of what is past its expiry, and a second end, are told of", async () => {
  await database.query("UPDATE capacity_lease SET expires_at = now() + interval '1 min'");
  expect(heard).toEqual([expect.stringMatching(/^I9: /)]);
  heard = [];
  await database.query(`BEGIN; UPDATE capacity_lease SET state = 'EXPIRED', ended_at = now(); UPDATE worker_pool SET used = 0;
    UPDATE scope_usage SET used_runs = 0; COMMIT`);
  expect(heard).toEqual([]);
  await database.query("UPDATE capacity_lease SET state = 'RELEASED'");
  expect(heard).toEqual([expect.stringMatching(/^I4: /)]);
});

test("a lease without history, and one whose holder has ended, are found", async () => {
  await database.query(`INSERT INTO ended_holder VALUES ('t', 'Attempt', '${leaseId}', now())`);
  expect(await brokenNow(database)).toEqual([`I6: ${leaseId} has ended and has the ACTIVE lease ${leaseId}`]);
  expect(await brokenHistory(database)).toEqual([
    `I4: lease ${leaseId} is ACTIVE, with 0 grants, 0 ends, 0 Granted and 0 Released`,
  ]);
});

test("whoever is granted at once while others have to be served first is told of", async () => {
  const newcomer = uuidv7();
  const come = `${lease(newcomer, "ACTIVE")}; UPDATE worker_pool SET used = used + 2;
    UPDATE scope_usage SET used_runs = used_runs + 2`;
  const place = (
    project: string,
  ) => `INSERT INTO queue_place (pool_tenant_id, pool_id, tenant_id, project_id, priority, lease_id)
    VALUES ('t', 'pool', 't', '${project}', 0, '${uuidv7()}')`;
  const share = "INSERT INTO fair_share (pool_tenant_id, pool_id, tenant_id, project_id, contended) VALUES";
  const cases: [before: string, meanwhile: string, told: string[]][] = [
    [place("other"), "", []],
    ["UPDATE worker_pool SET contended = true", "UPDATE worker_pool SET contended = false", ["where somebody waits"]],
    ["UPDATE worker_pool SET contended = true", "", ["where somebody waits"]],
    ["SELECT 1", "UPDATE worker_pool SET contended = true", []],
    [place("p"), "", ["of its own project"]],
    ["SELECT 1", place("p"), []],
    [
      `${place("other")}; ${share} ('t', 'pool', 't', '', true)`,
      "UPDATE fair_share SET contended = false",
      ["waits for its quota"],
    ],
    [`${place("other")}; ${share} ('t', 'pool', 't', '', false)`, "", []],
  ];
  for (const [before, meanwhile, told] of cases) {
    await database.query(`TRUNCATE queue_place, fair_share; UPDATE quota SET concurrent_runs = 1000;
      DELETE FROM capacity_lease WHERE id <> '${leaseId}'; UPDATE scope_usage SET used_runs = 2;
      UPDATE worker_pool SET current_size = 1000, used = 2, contended = false`);
    await database.query(before);
    heard = [];
    await database.query(`BEGIN; ${come}; ${meanwhile}; COMMIT`);
    expect([before, meanwhile, heard]).toEqual([before, meanwhile, told.map((text) => expect.stringContaining(text))]);
  }
});
