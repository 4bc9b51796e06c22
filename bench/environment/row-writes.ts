import type pg from "pg";

/** Rows that were inserted, updated or deleted, by table; tables without any are left out. */
export type RowWrites = Readonly<Record<string, number>>;

interface Connections {
  /** The only connection through which the work writes. */
  readonly written: pg.Pool;
  readonly aside: pg.Pool;
}

/** What some work writes, by PostgreSQL's own counters. */
export async function writesDuring(connections: Connections, work: () => Promise<void>): Promise<RowWrites> {
  const before = await writesSoFar(connections);
  await work();
  const after = await writesSoFar(connections);
  const differences = Object.entries(after).map(([table, count]) => [table, count - (before[table] ?? 0)] as const);
  return Object.fromEntries(differences.filter(([, count]) => count > 0));
}

async function writesSoFar({ written, aside }: Connections): Promise<RowWrites> {
  // A connection keeps what it has counted to itself for a second or more, unless it is told to hand it in.
  await written.query("SELECT pg_stat_force_next_flush()");
  const { rows } = await aside.query<{ table: string; writes: number }>(
    "SELECT relname AS table, (n_tup_ins + n_tup_upd + n_tup_del)::float8 AS writes FROM pg_stat_user_tables",
  );
  return Object.fromEntries(rows.map(({ table, writes }) => [table, writes]));
}
