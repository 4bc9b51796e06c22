import pg from "pg";

const CONNECT_TIMEOUT_MS = 5_000;
/** How long to wait for another process that migrates the same database. */
const LOCK_TIMEOUT_MS = 120_000;
const POOL_SIZE = 2;

/**
 * Runs `work` while no other process migrates this database; the pool is for `work` and is closed after it.
 *
 * @throws Error that names the database and what is wrong when it can't be reached; the password is left out.
 */
export async function withMigrationLock<T>(databaseUrl: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const holder = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: "runtime-cloud migrations lock",
  });
  // A lost connection surfaces in the statement that meets it; unheard, it would end the process.
  holder.on("error", () => undefined);
  await connect(holder, databaseUrl);
  try {
    await holder.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
    await holder.query("SELECT pg_advisory_lock(hashtextextended('runtime-cloud/migrations', 0))");
    return await withPool(databaseUrl, work);
  } finally {
    await holder.end();
  }
}

/** Lends a small pool on a database and closes it. */
export async function withPool<T>(databaseUrl: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: POOL_SIZE,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: "runtime-cloud migrations",
  });
  pool.on("error", () => undefined);
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}

async function connect(client: pg.Client, databaseUrl: string): Promise<void> {
  try {
    await client.connect();
  } catch (error) {
    const reason = error instanceof Error ? error.message || error.name : String(error);
    throw new Error(`Can't reach the database ${withoutPassword(databaseUrl)}: ${reason}`, { cause: error });
  }
}

function withoutPassword(databaseUrl: string): string {
  return databaseUrl.replace(/^(\w+:\/\/[^:@/]*):[^@]*@/, "$1@").replace(/\?.*$/, "");
}
