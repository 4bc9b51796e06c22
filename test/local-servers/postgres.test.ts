import { startPostgres, type LocalPostgres } from "@runtime-cloud/local-servers/postgres";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";

let home: string;
let dataDir: string;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "runtime-cloud-test-"));
  // Where we are root, PostgreSQL runs as another account, which must be able to pass.
  chmodSync(home, 0o755);
  dataDir = join(home, "postgres");
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

test("keeps its data and its password from one start to the next", async () => {
  const passwords: string[] = [];
  for (const expected of [[], ["kept"]]) {
    const postgres = await startPostgres({ dataDir, durable: false });
    passwords.push(new URL(postgres.url("postgres")).password);
    expect(await notes(postgres)).toEqual(expected);
    await query(postgres, "INSERT INTO note VALUES ('kept')");
    await postgres.stop();
  }
  expect(new Set(passwords).size).toBe(1);
});

test("refuses a wrong password", async () => {
  const postgres = await startPostgres({ dataDir, durable: false });
  try {
    const url = new URL(postgres.url("postgres"));
    url.password = "guessed";
    await expect(queryUrl(url.href, "SELECT 1")).rejects.toThrow("password authentication failed");
  } finally {
    await postgres.stop();
  }
});

test("shares the server that already runs on its folder, and leaves it running", async () => {
  const first = await startPostgres({ dataDir, durable: false });
  try {
    const second = await startPostgres({ dataDir, durable: false });
    expect(second.url("postgres")).toBe(first.url("postgres"));
    await second.stop();
    expect(await notes(first)).toContain("kept");
  } finally {
    await first.stop();
  }
});

test("two starts at once on a new folder end up with one server", async () => {
  const both = { dataDir: join(home, "raced"), durable: false };
  const servers = await Promise.all([startPostgres(both), startPostgres(both)]);
  try {
    expect(servers[0].url("postgres")).toBe(servers[1].url("postgres"));
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});

test("starts after a crash whose pid now belongs to another program", async () => {
  const crashed = await startPostgres({ dataDir, durable: false });
  const pidFile = join(await show(crashed, "data_directory"), "postmaster.pid");
  const left = readFileSync(pidFile, "utf8");
  await crashed.stop();
  writeFileSync(pidFile, left.replace(/^\d+/, String(process.pid)));

  const postgres = await startPostgres({ dataDir, durable: false });
  expect(await notes(postgres)).toContain("kept");
  await postgres.stop();
});

test("refuses data of another version and says what to do", async () => {
  const postgres = await startPostgres({ dataDir, durable: false });
  const versionFile = join(await show(postgres, "data_directory"), "PG_VERSION");
  await postgres.stop();
  writeFileSync(versionFile, "13\n");
  await expect(startPostgres({ dataDir })).rejects.toThrow(/data of PostgreSQL 13.*remove the folder/s);
});

async function notes(postgres: LocalPostgres): Promise<string[]> {
  await query(postgres, "CREATE TABLE IF NOT EXISTS note (text text)");
  return (await query(postgres, "SELECT text FROM note")).map((row) => String(row["text"]));
}

async function show(postgres: LocalPostgres, setting: string): Promise<string> {
  const [row] = await query(postgres, `SELECT current_setting('${setting}') AS value`);
  return String(row?.["value"]);
}

async function query(postgres: LocalPostgres, sql: string): Promise<Record<string, unknown>[]> {
  return queryUrl(postgres.url("postgres"), sql);
}

async function queryUrl(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}
