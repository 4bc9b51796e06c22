import { cloneDatabase, databaseUrl, dropDatabase, ensureDatabase } from "@runtime-cloud/local-servers/databases";
import { databaseName, type ServiceName } from "@runtime-cloud/migrations/services";
import { randomUUID } from "node:crypto";

import { fromSetUp } from "./environment.ts";

export interface TestDatabase {
  readonly url: string;
  /** Removes it, cutting off whoever is still connected. */
  drop(): Promise<void>;
}

/** A database of a test file's own, migrated as the service's is. */
export async function testDatabase(service: ServiceName): Promise<TestDatabase> {
  const template = fromSetUp("TEST_TEMPLATE_PREFIX") + databaseName(service);
  return named(`rc_test_${databaseName(service)}`, (adminUrl, name) => cloneDatabase(adminUrl, template, name));
}

/** A database of a test file's own with nothing in it. */
export async function emptyDatabase(): Promise<TestDatabase> {
  return named("rc_test_empty", ensureDatabase);
}

async function named(prefix: string, create: (adminUrl: string, name: string) => Promise<void>): Promise<TestDatabase> {
  const adminUrl = fromSetUp("TEST_DATABASE_ADMIN_URL");
  const name = `${prefix}_${randomUUID().slice(0, 8)}`;
  await create(adminUrl, name);
  return { url: databaseUrl(adminUrl, name), drop: () => dropDatabase(adminUrl, name) };
}
