import { startRedis } from "@runtime-cloud/local-servers/redis";
import { until } from "@runtime-cloud/local-servers/until";
import { Redis } from "ioredis";

/** A Redis that flushes what it acknowledges. */
export interface DurableRedis {
  /** So many connections of their own. */
  connections(count: number): Promise<Redis[]>;
  /** Ends its connections, then the server. */
  stop(): Promise<void>;
}

const REWRITE_TIMEOUT_MS = 10_000;

export async function startDurableRedis(): Promise<DurableRedis> {
  const server = await startRedis();
  const opened: Redis[] = [];
  try {
    const admin = new Redis(server.url);
    opened.push(admin);
    await admin.config("SET", "appendfsync", "always");
    await admin.config("SET", "appendonly", "yes");
    // It begins with a copy of what there is, and flushes nothing before.
    await until("Redis's append-only file", REWRITE_TIMEOUT_MS, async () => {
      const info = await admin.info("persistence");
      return (/^aof_enabled:1\r?$/m.test(info) && /^aof_rewrite_in_progress:0\r?$/m.test(info)) || undefined;
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    async connections(count) {
      const more = Array.from({ length: count }, () => new Redis(server.url));
      opened.push(...more);
      await Promise.all(more.map((connection) => connection.ping()));
      return more;
    },
    stop,
  };

  async function stop(): Promise<void> {
    for (const connection of opened) connection.disconnect();
    await server.stop();
  }
}
