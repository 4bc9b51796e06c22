import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { MigrationList, SchemaContainer } from "@prisma/schema-engine-wasm/schema_engine_bg";

import type { ServiceName } from "./services.ts";

const LOCKFILE = { path: "migration_lock.toml", content: 'provider = "postgresql"\n' };

/** The folder of a service's schema and migrations. */
export function prismaFolder(service: ServiceName): string {
  return fileURLToPath(new URL(`../../../prisma/${service}`, import.meta.url));
}

/** The names of a service's migrations, oldest first. */
export function migrationNames(service: ServiceName): string[] {
  const folder = join(prismaFolder(service), "migrations");
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, "migration.sql")))
    .sort();
}

/** A service's migrations in the shape that the schema engine reads. */
export function migrationList(service: ServiceName): MigrationList {
  const baseDir = join(prismaFolder(service), "migrations");
  return {
    baseDir,
    lockfile: LOCKFILE,
    shadowDbInitScript: "",
    migrationDirectories: migrationNames(service).map((name) => ({
      path: name,
      migrationFile: {
        path: "migration.sql",
        content: { tag: "ok", value: readFileSync(join(baseDir, name, "migration.sql"), "utf8") },
      },
    })),
  };
}

/** A service's Prisma schema, the shared eventing models included. */
export function datamodel(service: ServiceName): SchemaContainer[] {
  const folder = prismaFolder(service);
  return readdirSync(folder)
    .filter((name) => name.endsWith(".prisma"))
    .sort()
    .map((name) => ({ path: join(folder, name), content: readFileSync(join(folder, name), "utf8") }));
}
