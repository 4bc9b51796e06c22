import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { DurableRedis } from "./durable-redis.ts";
import { HOT_SCOPE } from "./hot-scope.ts";
import type { LeasePath } from "./lease-path.ts";
import { loadScript } from "./redis-script.ts";

const { slots, ttlSeconds } = HOT_SCOPE;
const HELD = "plain:held";

/** The semaphore that the usual libraries have: one sorted set by expiry, one limit, nothing else. */
export async function openPlainRedisPath(redis: DurableRedis, callers: number): Promise<LeasePath> {
  const connections = await redis.connections(callers);
  const [first] = connections;
  if (first === undefined) throw new Error("a semaphore without callers");
  const acquire = await loadScript(first, ACQUIRE);

  return {
    name: "redis_plain",
    about:
      "one sorted set by expiry and one limit, ZADD by a Lua script and ZREM, with appendfsync always; a connection a caller",
    async acquire(caller) {
      const connection = connections[caller] ?? first;
      const [member, now] = [uuidv7(), systemClock.now().getTime()];
      const got = await acquire(connection, [HELD], [member, now, now + ttlSeconds * 1_000, slots]);
      if (got !== 1) throw new Error("no slot is free");
      return {
        token: undefined,
        async release() {
          if ((await connection.zrem(HELD, member)) !== 1) throw new Error(`${member} wasn't held`);
        },
      };
    },
    async check() {
      const held = await first.zcard(HELD);
      if (held !== 0) throw new Error(`${held} are held`);
    },
    // Its connections are the server's to close.
    close: async () => undefined,
  };
}

const ACQUIRE = `
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2])
  if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
  return 1`;
