import { draftMigration } from "@runtime-cloud/migrations/draft";
import { schemaDrift } from "@runtime-cloud/migrations/drift";
import { lifecycleEdgeDrift } from "@runtime-cloud/migrations/lifecycle-edge-drift";
import { serviceNames } from "@runtime-cloud/migrations/services";
import { lifecycleEdges } from "@runtime-cloud/state-machines/lifecycle-edges";
import { afterEach, describe, expect, test } from "@jest/globals";
import pg from "pg";

import { emptyDatabase, testDatabase, type TestDatabase } from "../_support/database.ts";

const databases: TestDatabase[] = [];

afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop();
});

describe.each(serviceNames)("%s", (service) => {
  test("its migrations lead exactly to its Prisma schema", async () => {
    expect(await schemaDrift({ service, databaseUrl: await migrated(service) })).toBe("");
  });

  test("its migrations lead exactly to its machines' edges", async () => {
    expect(await lifecycleEdgeDrift(await migrated(service), lifecycleEdges(service))).toBe("");
  });

  test("there is no migration to write", async () => {
    const scratch = { service, databaseUrl: await kept(emptyDatabase()) };
    expect(await draftMigration(scratch, lifecycleEdges(service))).toBe("");
  });
});

test("a column that only the database has is drift, and the drift's SQL removes it", async () => {
  const [service] = serviceNames;
  const databaseUrl = await migrated(service);
  await sql(databaseUrl, `ALTER TABLE "lifecycle_edge" ADD COLUMN "surplus" TEXT`);
  const drift = await schemaDrift({ service, databaseUrl });
  expect(drift).toContain('DROP COLUMN "surplus"');
  await sql(databaseUrl, drift);
  expect(await schemaDrift({ service, databaseUrl })).toBe("");
});

test("edges that came and went are an INSERT and a DELETE that make the table equal", async () => {
  const [service] = serviceNames;
  const databaseUrl = await migrated(service);
  const [gone, ...stay] = lifecycleEdges(service);
  const wanted = [...stay, { aggregate: "o'clock", fromState: "NEW", event: "strike", toState: "STRUCK" }];

  const drift = await lifecycleEdgeDrift(databaseUrl, wanted);
  expect(drift).toContain('INSERT INTO "lifecycle_edge"');
  expect(drift).toContain("('o''clock', 'NEW', 'strike', 'STRUCK')");
  expect(drift).toContain('DELETE FROM "lifecycle_edge"');
  expect(drift).toContain(`('${gone?.aggregate}', '${gone?.fromState}', '${gone?.event}', '${gone?.toState}')`);

  await sql(databaseUrl, drift);
  expect(await lifecycleEdgeDrift(databaseUrl, wanted)).toBe("");
});

async function migrated(service: (typeof serviceNames)[number]): Promise<string> {
  return kept(testDatabase(service));
}

async function kept(creating: Promise<TestDatabase>): Promise<string> {
  const database = await creating;
  databases.push(database);
  return database.url;
}

async function sql(databaseUrl: string, statements: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(statements).finally(() => client.end());
}
