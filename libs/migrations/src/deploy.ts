import { migrationList, migrationNames } from "./migration-files.ts";
import { withMigrationLock } from "./migration-lock.ts";
import { everything, withSchemaEngine, type SchemaEngine } from "./schema-engine.ts";
import type { ServiceName } from "./services.ts";

/** A service's database: which service, and a PostgreSQL URL of its database, which must exist. */
export interface ServiceDatabase {
  readonly service: ServiceName;
  readonly databaseUrl: string;
}

/**
 * Applies the migrations that a service's database lacks and returns their names, oldest first. Safe to repeat and
 * to run from several processes at once: one applies, the others wait for it and find nothing to do.
 *
 * A migration is one transaction: one that fails changes nothing, stops the deploy and is tried again by the next.
 *
 * @throws Error with PostgreSQL's reason, and when an earlier deploy was cut off amid a migration.
 */
export async function deployMigrations({ service, databaseUrl }: ServiceDatabase): Promise<readonly string[]> {
  if (migrationNames(service).length === 0) return [];
  return withMigrationLock(databaseUrl, (pool) =>
    withSchemaEngine(service, pool, async (engine) => {
      const [cutOff] = await failedMigrations(engine, service);
      if (cutOff !== undefined) throw new Error(adviceFor(cutOff));
      try {
        return (await engine.applyMigrations({ migrationsList: migrationList(service), filters: everything }))
          .appliedMigrationNames;
      } catch (error) {
        for (const migrationName of await failedMigrations(engine, service)) {
          await engine.markMigrationRolledBack({ migrationName });
        }
        throw error;
      }
    }),
  );
}

async function failedMigrations(engine: SchemaEngine, service: ServiceName): Promise<string[]> {
  const input = { migrationsList: migrationList(service), optInToShadowDatabase: false, filters: everything };
  return (await engine.diagnoseMigrationHistory(input)).failedMigrationNames;
}

function adviceFor(migration: string): string {
  return (
    `a deploy was cut off amid ${migration}. See whether it took effect, then say so in its row of ` +
    "_prisma_migrations: set finished_at if it did, rolled_back_at if it didn't, and deploy again."
  );
}
