import { deployMigrations } from "@runtime-cloud/migrations/deploy";
import { migrationNames } from "@runtime-cloud/migrations/migration-files";
import { serviceNames } from "@runtime-cloud/migrations/services";
import { migrateStatus } from "@runtime-cloud/migrations/status";
import { afterEach, describe, expect, test } from "@jest/globals";
import pg from "pg";

import { emptyDatabase, type TestDatabase } from "../_support/database.ts";

const databases: TestDatabase[] = [];

afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop();
});

describe.each(serviceNames)("%s", (service) => {
  test("several processes that deploy at once apply each migration once, and a repeat applies none", async () => {
    const databaseUrl = await fresh();
    expect(new Set(await states())).toEqual(new Set(["PENDING"]));

    const applied = await Promise.all([1, 2, 3].map(() => deployMigrations({ service, databaseUrl })));
    expect(applied.flat()).toEqual(migrationNames(service));
    expect(await deployMigrations({ service, databaseUrl })).toEqual([]);
    expect(new Set(await states())).toEqual(new Set(["APPLIED"]));

    async function states(): Promise<string[]> {
      return (await migrateStatus({ service, databaseUrl })).map(({ state }) => state);
    }
  });
});

test("a migration whose file changed after it was applied is shown as EDITED, one without a file as UNKNOWN", async () => {
  const [service] = serviceNames;
  const databaseUrl = await fresh();
  const [first = ""] = await deployMigrations({ service, databaseUrl });
  await sql(databaseUrl, `UPDATE _prisma_migrations SET checksum = 'another' WHERE migration_name = '${first}'`);
  await sql(
    databaseUrl,
    `INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count)
     VALUES ('later', 'x', now(), '99990101000000_from_the_future', 1)`,
  );

  const status = await migrateStatus({ service, databaseUrl });
  expect(status).toContainEqual({ name: first, state: "EDITED" });
  expect(status).toContainEqual({ name: "99990101000000_from_the_future", state: "UNKNOWN" });
});

test("a migration that fails says PostgreSQL's reason, changes nothing and is tried again", async () => {
  const [service] = serviceNames;
  const databaseUrl = await fresh();
  await deployMigrations({ service, databaseUrl });
  const last = migrationNames(service).at(-1) ?? "";
  await sql(databaseUrl, `DELETE FROM _prisma_migrations WHERE migration_name = '${last}'`);

  for (const attempt of [1, 2]) {
    const failure = await deployMigrations({ service, databaseUrl }).catch(
      (error: unknown) => `${attempt}: ${String(error)}`,
    );
    expect(failure).toMatch(/does not exist|already exists/);
    expect(await migrateStatus({ service, databaseUrl })).toContainEqual({ name: last, state: "PENDING" });
  }
});

test("a deploy that was cut off amid a migration stops the next one and says what to look at", async () => {
  const [service] = serviceNames;
  const databaseUrl = await fresh();
  const [first = ""] = await deployMigrations({ service, databaseUrl });
  await sql(databaseUrl, `UPDATE _prisma_migrations SET finished_at = NULL WHERE migration_name = '${first}'`);

  await expect(deployMigrations({ service, databaseUrl })).rejects.toThrow(
    new RegExp(`${service}: a deploy was cut off amid ${first}.*_prisma_migrations`),
  );
  expect(await migrateStatus({ service, databaseUrl })).toContainEqual({ name: first, state: "FAILED" });
});

test("a database that can't be reached is named, without its password", async () => {
  const unreachable = { service: serviceNames[0], databaseUrl: "postgresql://me:secret@127.0.0.1:1/nowhere" };
  const failure = await deployMigrations(unreachable).catch((error: unknown) => error);
  expect(String(failure)).toContain("Can't reach the database postgresql://me@127.0.0.1:1/nowhere");
  expect(String(failure)).not.toContain("secret");
});

async function fresh(): Promise<string> {
  const database = await emptyDatabase();
  databases.push(database);
  return database.url;
}

async function sql(databaseUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}
