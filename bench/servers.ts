import { databaseUrl, ensureDatabase } from "@runtime-cloud/local-servers/databases";
import { startPostgres } from "@runtime-cloud/local-servers/postgres";
import { startRedis } from "@runtime-cloud/local-servers/redis";
import { deployMigrations } from "@runtime-cloud/migrations/deploy";
import { databaseName, type ServiceName } from "@runtime-cloud/migrations/services";
import { Redis } from "ioredis";
import pg from "pg";

/** A PostgreSQL that flushes every commit to disk, and a Redis: real ones, private, with data that end with them. */
export interface BenchServers {
  /** The URL of a service's own database, migrated; another name is another one. */
  database(service: ServiceName, name?: string): Promise<string>;
  /** The URL of a database with nothing in it. */
  emptyDatabase(name: string): Promise<string>;
  readonly redisUrl: string;
  readonly versions: { readonly postgres: string; readonly redis: string };
}

export async function withServers<T>(work: (servers: BenchServers) => Promise<T>): Promise<T> {
  const postgres = await startPostgres({ durable: true });
  try {
    const redis = await startRedis();
    try {
      return await work(await describe(postgres.url("postgres"), redis.url));
    } finally {
      await redis.stop();
    }
  } finally {
    await postgres.stop();
  }
}

async function describe(adminUrl: string, redisUrl: string): Promise<BenchServers> {
  return {
    redisUrl,
    versions: { postgres: await durablePostgres(adminUrl), redis: await redisVersion(redisUrl) },
    async emptyDatabase(name) {
      await ensureDatabase(adminUrl, name);
      return databaseUrl(adminUrl, name);
    },
    async database(service, name = databaseName(service)) {
      await ensureDatabase(adminUrl, name);
      await deployMigrations({ service, databaseUrl: databaseUrl(adminUrl, name) });
      return databaseUrl(adminUrl, name);
    },
  };
}

/** The server's version. Throws when it would acknowledge what isn't on disk: its figures would flatter us. */
async function durablePostgres(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ version: string; durable: boolean }>(
      `SELECT current_setting('server_version') AS version,
              current_setting('fsync') = 'on' AND current_setting('synchronous_commit') = 'on' AS durable`,
    );
    if (!rows[0]?.durable) throw new Error("The benchmarks' PostgreSQL doesn't flush its commits.");
    return rows[0].version;
  } finally {
    await client.end();
  }
}

async function redisVersion(url: string): Promise<string> {
  const redis = new Redis(url);
  try {
    const info = await redis.info("server");
    return /^(?:valkey|redis)_version:(\S+)/m.exec(info)?.[1] ?? "unknown";
  } finally {
    await redis.quit();
  }
}
