import type pg from "pg";
import type { SqlTransaction } from "./sql-transaction.ts";

/** The database's instant, by which everything that ends by time ends. */
export async function databaseNow(pool: pg.Pool): Promise<Date> {
  const { rows } = await pool.query<Now>("SELECT clock_timestamp() AS now");
  return onlyRow(rows);
}

/**
 * The same in a transaction. Read it once the locks are held: SQL's `now()` is the transaction's start, and time has
 * gone by while it waited for them.
 */
export async function transactionNow(tx: SqlTransaction): Promise<Date> {
  return onlyRow(await tx.$queryRaw<Now[]>`SELECT clock_timestamp() AS now`);
}

export function secondsAfter(at: Date, seconds: number): Date {
  return new Date(at.getTime() + seconds * 1_000);
}

interface Now {
  now: Date;
}

function onlyRow(rows: Now[]): Date {
  const now = rows[0]?.now;
  if (!now) throw new Error("the database gave no time");
  return now;
}
