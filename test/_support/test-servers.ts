import { databaseUrl, dropDatabase, ensureDatabase } from "@runtime-cloud/local-servers/databases";
import { startPostgres } from "@runtime-cloud/local-servers/postgres";
import { startRedis } from "@runtime-cloud/local-servers/redis";
import { deployMigrations } from "@runtime-cloud/migrations/deploy";
import { migrationNames } from "@runtime-cloud/migrations/migration-files";
import { databaseName, serviceNames, type ServiceName } from "@runtime-cloud/migrations/services";

import { bundleServices } from "./service-bundles.ts";

interface TestServers {
  stop(): Promise<void>;
}

/**
 * Starts what the test files share, and tells them by the environment: a PostgreSQL with a migrated template database
 * per service (TEST_DATABASE_ADMIN_URL, TEST_TEMPLATE_PREFIX), a Redis (TEST_REDIS_URL), and what Node runs as a service
 * (SERVICE_BUNDLES). Uses the servers of DATABASE_ADMIN_URL and TEST_REDIS_URL or REDIS_URL instead, where set.
 */
export async function startTestServers(): Promise<TestServers> {
  const postgres = await givenOr(["DATABASE_ADMIN_URL"], async () => {
    const started = await startPostgres();
    return { url: started.url("postgres"), stop: () => started.stop() };
  });
  const redis = await givenOr(["TEST_REDIS_URL", "REDIS_URL"], () => startRedis());
  const prefix = `rc_template_${process.pid}_`;
  process.env["TEST_DATABASE_ADMIN_URL"] = postgres.url;
  process.env["TEST_TEMPLATE_PREFIX"] = prefix;
  process.env["TEST_REDIS_URL"] = redis.url;
  process.env["SERVICE_BUNDLES"] = await bundleServices();

  // A service is tested on a database once it has its first migration.
  const migrated = serviceNames.filter((service) => migrationNames(service).length > 0);
  for (const service of migrated) await migrateTemplate(postgres.url, prefix, service);

  return {
    async stop() {
      for (const service of migrated) await dropDatabase(postgres.url, prefix + databaseName(service));
      await postgres.stop();
      await redis.stop();
    },
  };
}

async function migrateTemplate(adminUrl: string, prefix: string, service: ServiceName): Promise<void> {
  const template = prefix + databaseName(service);
  await ensureDatabase(adminUrl, template);
  await deployMigrations({ service, databaseUrl: databaseUrl(adminUrl, template) });
}

interface Server extends TestServers {
  readonly url: string;
}

async function givenOr(variables: readonly string[], start: () => Promise<Server>): Promise<Server> {
  const given = variables.map((name) => process.env[name]).find((url) => url !== undefined && url !== "");
  return given === undefined ? start() : { url: given, stop: () => Promise.resolve() };
}
