import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { deployMigrations, type ServiceDatabase } from "./deploy.ts";
import { schemaDrift } from "./drift.ts";
import { lifecycleEdgeDrift, type LifecycleEdge } from "./lifecycle-edge-drift.ts";
import { prismaFolder } from "./migration-files.ts";
import type { ServiceName } from "./services.ts";

/**
 * The SQL that takes a service from its migrations so far to its Prisma schema and its machines' edges; empty when
 * they lead there already. `scratch` is an empty database, which this migrates and the caller drops.
 */
export async function draftMigration(scratch: ServiceDatabase, edges: readonly LifecycleEdge[]): Promise<string> {
  await deployMigrations(scratch);
  const parts = [await schemaDrift(scratch), await lifecycleEdgeDrift(scratch.databaseUrl, edges)];
  return parts.filter((part) => part !== "").join("\n");
}

/** Adds a migration to a service's and returns its file. `name` says what it is for: words joined by `_`. */
export async function writeMigration(service: ServiceName, name: string, now: Date, sql: string): Promise<string> {
  const folder = join(prismaFolder(service), "migrations", `${timestamp(now)}_${name}`);
  await mkdir(folder, { recursive: true });
  const file = join(folder, "migration.sql");
  await writeFile(file, sql, { flag: "wx" });
  return file;
}

function timestamp(now: Date): string {
  return now.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14);
}
