import { Redis } from "ioredis";
import type pg from "pg";

/** What PostgreSQL and Redis did meanwhile. */
export interface Costs {
  readonly seconds: number;
  readonly walBytes: number;
  readonly redisCommands: number;
}

/** What they did during the work, but for the readings. */
export async function costsOf(pool: pg.Pool, redisUrl: string, work: () => Promise<void>): Promise<Costs> {
  const redis = new Redis(redisUrl);
  try {
    await redis.ping();
    const before = { commands: await commandsSoFar(redis), wal: await walPosition(pool) };
    const start = performance.now();
    await work();
    const seconds = (performance.now() - start) / 1_000;
    const after = { commands: await commandsSoFar(redis), wal: await walPosition(pool) };
    // A reading counts itself.
    return { seconds, walBytes: after.wal - before.wal, redisCommands: after.commands - before.commands - 1 };
  } finally {
    await redis.quit();
  }
}

/** Also those that a script calls. */
async function commandsSoFar(redis: Redis): Promise<number> {
  const stats = await redis.info("stats");
  const commands = /^total_commands_processed:(\d+)/m.exec(stats)?.[1];
  if (commands === undefined) throw new Error("Redis doesn't say how many commands it processed");
  return Number(commands);
}

async function walPosition(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ bytes: number }>(
    "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS bytes",
  );
  return rows[0]?.bytes ?? NaN;
}
