import type pg from "pg";

/** The database's instant, by which everything that ends by time ends. */
export async function databaseNow(pool: pg.Pool): Promise<Date> {
  const { rows } = await pool.query<{ now: Date }>("SELECT clock_timestamp() AS now");
  const now = rows[0]?.now;
  if (!now) throw new Error("the database gave no time");
  return now;
}
