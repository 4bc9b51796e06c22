import type { ServiceDatabase } from "./deploy.ts";
import { datamodel, prismaFolder } from "./migration-files.ts";
import { withPool } from "./migration-lock.ts";
import { everything, withSchemaEngine } from "./schema-engine.ts";

/**
 * The SQL that would bring a database to its service's Prisma schema; empty when they are equal. What Prisma has no
 * word for (checks, partial indexes, triggers, functions) is not compared.
 */
export async function schemaDrift({ service, databaseUrl }: ServiceDatabase): Promise<string> {
  const files = datamodel(service);
  const { exitCode, stdout } = await withPool(databaseUrl, (pool) =>
    withSchemaEngine(service, pool, (engine) =>
      engine.diff({
        from: { tag: "schemaDatasource", files, configDir: prismaFolder(service) },
        to: { tag: "schemaDatamodel", files },
        script: true,
        exitCode: true,
        filters: everything,
      }),
    ),
  );
  return exitCode === 0 ? "" : (stdout ?? "");
}
