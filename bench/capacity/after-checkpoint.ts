import pg from "pg";
import type { Contestant } from "../rounds.ts";

/**
 * Lets PostgreSQL write down what earlier rounds left in its memory before a round begins, whoever plays it: the disk
 * would otherwise be busy with it in somebody else's.
 */
export async function afterCheckpoints<Result>(
  databaseUrl: string,
  work: (afterCheckpoint: (contestant: Contestant) => Contestant) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await work(({ name, round }) => ({
      name,
      async round() {
        await client.query("CHECKPOINT");
        return round();
      },
    }));
  } finally {
    await client.end();
  }
}
