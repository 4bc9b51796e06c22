import { dataFolder } from "@runtime-cloud/local-servers/data-folder";
import { databaseUrl, ensureDatabase } from "@runtime-cloud/local-servers/databases";
import { startPostgres } from "@runtime-cloud/local-servers/postgres";
import { startRedis } from "@runtime-cloud/local-servers/redis";
import { findRedisServer } from "@runtime-cloud/local-servers/redis-server";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { deployMigrations } from "@runtime-cloud/migrations/deploy";
import { databaseName, serviceNames, type ServiceName } from "@runtime-cloud/migrations/services";
import { ConfigError } from "@runtime-cloud/service-kit/config";
import { silentLogger } from "@runtime-cloud/service-kit/logger";

/** The servers that a run on one machine needs: its own, or those that the environment names. */
export interface LocalInfrastructure {
  databaseUrls: Record<ServiceName, string>;
  /** Variables that tell a service where the queues are. */
  queues: Record<string, string>;
  stop(): Promise<void>;
}

export interface InfrastructureOptions {
  env: NodeJS.ProcessEnv;
  /** Told each step, in a line. */
  log: (line: string) => void;
  /** Where no Redis can be had, queues live in PostgreSQL; unless this asks for a real one. */
  redisRequired: boolean;
  /** Servers of its own whose data nothing outlives, instead of those that `.data/` keeps for the next run. */
  scratch: boolean;
}

const QUEUE_DATABASE = "runtime_cloud_queues";

/**
 * PostgreSQL: the services' `<SERVICE>_DATABASE_URL`s, for what isn't named there DATABASE_ADMIN_URL's server, else an
 * embedded one. Queues: REDIS_URL, else a private Redis from the PATH, else PostgreSQL. Every database is migrated.
 */
export async function startLocalInfrastructure(options: InfrastructureOptions): Promise<LocalInfrastructure> {
  refuseOneDatabase(options.env);
  const started: Stoppable[] = [];
  const stop = async () => {
    for (const server of started.splice(0).reverse()) await server.stop();
  };
  try {
    const adminUrl = await postgres(options, started);
    const databaseUrls = await databases(options, adminUrl);
    return { databaseUrls, queues: await queues(options, adminUrl, started), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Undefined when every database is named. */
async function postgres(
  { env, log, scratch }: InfrastructureOptions,
  started: Stoppable[],
): Promise<string | undefined> {
  if (env.DATABASE_ADMIN_URL) return env.DATABASE_ADMIN_URL;
  if (serviceNames.every((service) => env[variableOf(service)])) return undefined;
  const server = await startPostgres({ ...(!scratch && { dataDir: dataFolder("postgres") }), log });
  started.push(server);
  log(`PostgreSQL: embedded, ${scratch ? "for this run alone" : "data in .data/postgres"}`);
  return server.url("postgres");
}

async function databases(
  { env, log }: InfrastructureOptions,
  adminUrl: string | undefined,
): Promise<Record<ServiceName, string>> {
  const open = async (service: ServiceName) => {
    const url = env[variableOf(service)] || (await ensured(adminUrl, databaseName(service)));
    const applied = await deployMigrations({ service, databaseUrl: url });
    if (applied.length > 0) log(`${service}: applied ${applied.length} migrations`);
    return url;
  };
  return {
    "iac-provisioning": await open("iac-provisioning"),
    "execution-capacity": await open("execution-capacity"),
    "runtime-environment": await open("runtime-environment"),
  };
}

async function queues(
  { env, log, redisRequired, scratch }: InfrastructureOptions,
  adminUrl: string | undefined,
  started: Stoppable[],
): Promise<Record<string, string>> {
  if (env.REDIS_URL) return givenRedis(env.REDIS_URL);
  if (redisRequired || findRedisServer() !== undefined) {
    const redis = await startRedis({ ...(!scratch && { dataDir: dataFolder("redis") }), log });
    started.push(redis);
    log("queues: a private Redis");
    return { REDIS_URL: redis.url };
  }
  log("queues: in PostgreSQL, since no redis-server or valkey-server is on the PATH and REDIS_URL is not set");
  return { QUEUE_DATABASE_URL: env.QUEUE_DATABASE_URL || (await ensured(adminUrl, QUEUE_DATABASE)) };
}

async function givenRedis(url: string): Promise<Record<string, string>> {
  const backend = redisBackend({ url, prefix: "{probe}", logger: silentLogger() });
  try {
    if ((await backend.check()) === "ready") return { REDIS_URL: url };
    throw new ConfigError(["REDIS_URL: no Redis answers there; start it, or unset REDIS_URL for a private one"]);
  } finally {
    await backend.close();
  }
}

function refuseOneDatabase({ DATABASE_URL }: NodeJS.ProcessEnv): void {
  if (!DATABASE_URL) return;
  const variables = serviceNames.map(variableOf).join(", ");
  throw new ConfigError([
    `DATABASE_URL names one database, and each service has its own: set ${variables}, or DATABASE_ADMIN_URL for a server where they are made`,
  ]);
}

async function ensured(adminUrl: string | undefined, name: string): Promise<string> {
  if (adminUrl === undefined) throw new Error("QUEUE_DATABASE_URL or REDIS_URL is not set, and no server is at hand");
  await ensureDatabase(adminUrl, name);
  return databaseUrl(adminUrl, name);
}

/** For example EXECUTION_CAPACITY_DATABASE_URL. */
function variableOf(service: ServiceName): string {
  return `${databaseName(service).toUpperCase()}_DATABASE_URL`;
}

type Stoppable = { stop(): Promise<void> };
