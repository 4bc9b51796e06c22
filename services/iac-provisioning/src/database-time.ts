import type { Tx } from "./context.ts";

/** The database's instant, by which everything that ends by time ends, and by which runs queue. */
export async function databaseTime(tx: Tx): Promise<Date> {
  const [row] = await tx.$queryRaw<{ now: Date }[]>`SELECT clock_timestamp() AS now`;
  if (!row) throw new Error("the database gave no time");
  return row.now;
}
