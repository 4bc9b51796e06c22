import pg from "pg";

const CONNECT_TIMEOUT_MS = 5_000;
const SQLSTATE_DUPLICATE_DATABASE = "42P04";
/** Two CREATE DATABASE of one name at once collide in the catalogue's index instead. */
const SQLSTATE_UNIQUE_VIOLATION = "23505";

/** Creates a database if the server of `adminUrl` hasn't one of that name. */
export async function ensureDatabase(adminUrl: string, name: string): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    const found = await admin.query("SELECT 1 FROM pg_database WHERE datname = $1", [name]);
    if (found.rowCount !== 0) return;
    await admin.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`).catch(unlessCreatedMeanwhile);
  });
}

/** Copies a database that nobody is connected to. */
export async function cloneDatabase(adminUrl: string, template: string, name: string): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    // Copying files is quicker than logging pages, for databases as small as ours.
    const source = `TEMPLATE ${pg.escapeIdentifier(template)} STRATEGY file_copy`;
    await admin.query(`CREATE DATABASE ${pg.escapeIdentifier(name)} ${source}`);
  });
}

/** Removes a database if it is there, cutting off whoever is connected to it. */
export async function dropDatabase(adminUrl: string, name: string): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    await admin.query(`DROP DATABASE IF EXISTS ${pg.escapeIdentifier(name)} WITH (FORCE)`);
  });
}

/** The URL of another database on the same server. */
export function databaseUrl(adminUrl: string, name: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url.href;
}

async function withAdmin(adminUrl: string, work: (admin: pg.Client) => Promise<void>): Promise<void> {
  const admin = new pg.Client({ connectionString: adminUrl, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  admin.on("error", () => undefined);
  await admin.connect();
  try {
    await work(admin);
  } finally {
    await admin.end();
  }
}

function unlessCreatedMeanwhile(error: unknown): void {
  const meanwhile = [SQLSTATE_DUPLICATE_DATABASE, SQLSTATE_UNIQUE_VIOLATION];
  if (error instanceof pg.DatabaseError && error.code !== undefined && meanwhile.includes(error.code)) return;
  throw error;
}
