import { createHash } from "node:crypto";
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";

export interface DatabaseOptions {
  url: string;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  maxConnections?: number;
  /** Told of a connection that broke while nobody was using it. The pool has replaced it already. */
  onError: (error: Error) => void;
}

export interface Database<Client> {
  client: Client;
  /** For set-based SQL and for the gauges; it shares its connections with `client`. */
  pool: pg.Pool;
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 10;
const CONNECT_TIMEOUT_MS = 2_000;
// Each bound lies above the one before, so that the server's own refusal, which is certain, comes first.
const LOCK_TIMEOUT_MS = 3_000;
const STATEMENT_TIMEOUT_MS = 8_000;
const QUERY_TIMEOUT_MS = 10_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;

/**
 * Opens a service's database: one bounded pool, and `make` builds the service's generated Prisma client on it. Nothing
 * connects before the first query. A transaction-mode pooler between us and PostgreSQL would break the named
 * statements.
 */
export function openDatabase<Client extends { $disconnect(): Promise<void> }>(
  { url, applicationName, maxConnections = MAX_CONNECTIONS, onError }: DatabaseOptions,
  make: (adapter: PrismaPg) => Client,
): Database<Client> {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: applicationName,
    max: maxConnections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    keepAlive: true,
  });
  pool.on("error", onError);
  // A connection that breaks in somebody's hands fails their query, and says so by an event too; an event that nobody
  // hears ends the process.
  pool.on("connect", (connection) => connection.on("error", () => undefined));
  const adapter = new PrismaPg(pool, {
    onConnectionError: onError,
    statementNameGenerator: statementNames(),
  });
  const client = make(adapter);
  return {
    client,
    pool,
    async close() {
      // Prisma may connect, and so give up a connection attempt, more than once: the pool isn't its to end.
      await client.$disconnect();
      await pool.end();
    },
  };
}

/** How many distinct statements a connection keeps prepared. Lists of varying length would otherwise add up forever. */
const MAX_PREPARED = 500;

function statementNames(): (query: { sql: string }) => string {
  const names = new Map<string, string>();
  return ({ sql }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    // The driver takes an empty name for a statement that isn't kept.
    if (names.size >= MAX_PREPARED) return "";
    const name = createHash("sha256").update(sql).digest("base64url");
    names.set(sql, name);
    return name;
  };
}
