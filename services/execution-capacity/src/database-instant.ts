import type { Tx } from "./context.ts";

/**
 * The database's clock, in a transaction. Read it once the locks are held: `now()` is the transaction's start, and time
 * has gone by while it waited for them.
 */
export async function databaseInstant(tx: Tx): Promise<Date> {
  const [row] = await tx.$queryRaw<{ now: Date }[]>`SELECT clock_timestamp() AS now`;
  if (!row) throw new Error("the database gave no time");
  return row.now;
}
