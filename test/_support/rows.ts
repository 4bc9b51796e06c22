import type pg from "pg";

/** How many rows there are: `countRows(pool, "inventory WHERE id = $1", id)`. */
export async function countRows(pool: pg.Pool, fromWhere: string, ...parameters: string[]): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${fromWhere}`, parameters);
  return rows[0]?.count ?? 0;
}

/** Keeps everybody from writing to a table until the answer is called. */
export async function lockTable(pool: pg.Pool, table: string): Promise<() => Promise<void>> {
  const client = await pool.connect();
  await client.query("BEGIN");
  await client.query(`LOCK TABLE ${table} IN SHARE MODE`);
  return async () => {
    await client.query("ROLLBACK");
    client.release();
  };
}
