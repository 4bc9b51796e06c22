import { dataFolder } from "@runtime-cloud/local-servers/data-folder";
import { databaseUrl, dropDatabase, ensureDatabase } from "@runtime-cloud/local-servers/databases";
import { startPostgres } from "@runtime-cloud/local-servers/postgres";
import { databaseName, type ServiceName } from "@runtime-cloud/migrations/services";

/** Where the services' databases are. */
export interface MigrationServer {
  /** A service's database, which exists. */
  databaseUrl(service: ServiceName): Promise<string>;
  /** Lends an empty database that is dropped afterwards. */
  withScratchDatabase<T>(service: ServiceName, work: (url: string) => Promise<T>): Promise<T>;
}

/**
 * Finds the databases by the environment; `one` says that a single service is meant, so that DATABASE_URL may name
 * its database. Starts the embedded server only if it is needed.
 */
export async function withServer<T>(one: boolean, work: (server: MigrationServer) => Promise<T>): Promise<T> {
  let stop = (): Promise<void> => Promise.resolve();
  let admin: Promise<string> | undefined;
  const adminUrl = async (): Promise<string> => {
    const given = process.env["DATABASE_ADMIN_URL"];
    if (given !== undefined && given !== "") return given;
    const postgres = await startPostgres({ dataDir: dataFolder("postgres"), log: (line) => console.log(line) });
    stop = () => postgres.stop();
    return postgres.url("postgres");
  };
  const onServer = () => (admin ??= adminUrl());

  try {
    return await work({
      async databaseUrl(service) {
        const given = databaseUrlOf(service, one);
        if (given !== undefined) return given;
        await ensureDatabase(await onServer(), databaseName(service));
        return databaseUrl(await onServer(), databaseName(service));
      },
      withScratchDatabase: async (service, use) => withScratch(await onServer(), service, use),
    });
  } finally {
    await stop();
  }
}

function databaseUrlOf(service: ServiceName, one: boolean): string | undefined {
  const names = [`${databaseName(service).toUpperCase()}_DATABASE_URL`, ...(one ? ["DATABASE_URL"] : [])];
  return names.map((name) => process.env[name]).find((url) => url !== undefined && url !== "");
}

async function withScratch<T>(admin: string, service: ServiceName, use: (url: string) => Promise<T>): Promise<T> {
  const name = `${databaseName(service)}_scratch_${process.pid}`;
  await ensureDatabase(admin, name);
  try {
    return await use(databaseUrl(admin, name));
  } finally {
    await dropDatabase(admin, name);
  }
}
