import type pg from "pg";

/** Does the work in one transaction, and answers when (`performance.now()`) its COMMIT was sent. */
export async function committed(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<void>): Promise<number> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await work(client);
    const committing = performance.now();
    await client.query("COMMIT");
    return committing;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

/** The items in portions, for statements of a bounded size. */
export function* portions<Item>(items: readonly Item[], size: number): Generator<readonly Item[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size);
}
