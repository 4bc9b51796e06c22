import type { ServiceDatabase } from "./deploy.ts";
import { migrationList, migrationNames } from "./migration-files.ts";
import { withMigrationLock } from "./migration-lock.ts";
import { everything, withSchemaEngine } from "./schema-engine.ts";

export interface MigrationStatus {
  readonly name: string;
  /** FAILED: began and did not end. EDITED: the file changed after it was applied. UNKNOWN: applied, but no file. */
  readonly state: "APPLIED" | "PENDING" | "FAILED" | "EDITED" | "UNKNOWN";
}

/** What a service's database has of its migrations, oldest first. */
export async function migrateStatus({ service, databaseUrl }: ServiceDatabase): Promise<MigrationStatus[]> {
  const diagnosis = await withMigrationLock(databaseUrl, (pool) =>
    withSchemaEngine(service, pool, (engine) =>
      engine.diagnoseMigrationHistory({
        migrationsList: migrationList(service),
        optInToShadowDatabase: false,
        filters: everything,
      }),
    ),
  );
  const { history, failedMigrationNames, editedMigrationNames } = diagnosis;
  const pending = history !== null && "unappliedMigrationNames" in history ? history.unappliedMigrationNames : [];
  const unknown = history !== null && "unpersistedMigrationNames" in history ? history.unpersistedMigrationNames : [];

  const stateOf = (name: string): MigrationStatus["state"] => {
    if (failedMigrationNames.includes(name)) return "FAILED";
    if (unknown.includes(name)) return "UNKNOWN";
    if (pending.includes(name)) return "PENDING";
    return editedMigrationNames.includes(name) ? "EDITED" : "APPLIED";
  };
  const names = new Set([...migrationNames(service), ...unknown, ...failedMigrationNames]);
  return [...names].sort().map((name) => ({ name, state: stateOf(name) }));
}
