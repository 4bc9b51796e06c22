import { cloneDatabase, databaseUrl, dropDatabase, ensureDatabase } from "@runtime-cloud/local-servers/databases";
import { afterAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import pg from "pg";

import { fromSetUp } from "../_support/environment.ts";

const adminUrl = fromSetUp("TEST_DATABASE_ADMIN_URL");
const name = `rc_test_${randomUUID().slice(0, 8)}`;
const copy = `${name}_copy`;

afterAll(async () => {
  await dropDatabase(adminUrl, name);
  await dropDatabase(adminUrl, copy);
});

test("ensuring a database many times at once makes it once", async () => {
  await Promise.all(Array.from({ length: 4 }, () => ensureDatabase(adminUrl, name)));
  expect(await rows(adminUrl, `SELECT datname FROM pg_database WHERE datname = '${name}'`)).toHaveLength(1);
});

test("a clone has what the template has, and goes even while somebody is connected to it", async () => {
  await rows(databaseUrl(adminUrl, name), "CREATE TABLE thing AS SELECT 7 AS size");
  await cloneDatabase(adminUrl, name, copy);
  const guest = new pg.Client({ connectionString: databaseUrl(adminUrl, copy) });
  guest.on("error", () => undefined);
  await guest.connect();
  expect((await guest.query("SELECT size FROM thing")).rows).toEqual([{ size: 7 }]);

  await dropDatabase(adminUrl, copy);
  expect(await rows(adminUrl, `SELECT datname FROM pg_database WHERE datname = '${copy}'`)).toEqual([]);
  await guest.end().catch(() => undefined);
});

async function rows(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}
