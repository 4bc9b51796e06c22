import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { z } from "zod";
import type { DurableRedis } from "./durable-redis.ts";
import { HOT_SCOPE } from "./hot-scope.ts";
import type { LeasePath } from "./lease-path.ts";
import { loadScript } from "./redis-script.ts";

const { slots, tenantLimit, projectLimit, ttlSeconds } = HOT_SCOPE;
const PREFIX = "{slots}";
const EXPIRIES = `${PREFIX}:expiries`;
const USED = `${PREFIX}:used`;
const LEASES = `${PREFIX}:lease:`;
const HOLDERS = `${PREFIX}:holder:`;
const TOKENS = `${PREFIX}:tokens`;
const PURGED_AT_ONCE = 100;

/**
 * A semaphore as far as Redis goes towards ours: three limits at once, one lease a holder, fencing tokens, releases that
 * may be repeated, and expiry by the caller's clock. It keeps no ended lease, no history and tells no event.
 */
export async function openRedisPath(redis: DurableRedis, callers: number): Promise<LeasePath> {
  const connections = await redis.connections(callers);
  const connectionOf = (caller: number) => {
    const connection = connections[caller];
    if (connection === undefined) throw new Error(`caller ${caller} has no connection`);
    return connection;
  };
  const first = connectionOf(0);
  const acquire = await loadScript(first, ACQUIRE);
  const release = await loadScript(first, RELEASE);
  let tokensSoFar = 0;

  return {
    name: "redis",
    about:
      "a Lua script a request with appendfsync always: pool, tenant and project limits, one lease a holder, fencing tokens, expiry by the caller's clock; no history, no events; a connection a caller",
    async acquire(caller) {
      const connection = connectionOf(caller);
      const [leaseId, now] = [uuidv7(), systemClock.now().getTime()];
      const args = [leaseId, uuidv7(), now, now + ttlSeconds * 1_000, slots, tenantLimit, projectLimit, PURGED_AT_ONCE];
      const [granted, token] = grantSchema.parse(await acquire(connection, [EXPIRIES, USED, TOKENS], args));
      if (granted !== leaseId) throw new Error("a new holder had a lease already");
      return {
        token: BigInt(token),
        async release() {
          if ((await release(connection, [EXPIRIES, USED], [leaseId])) !== 1) throw new Error(`${leaseId} wasn't held`);
        },
      };
    },
    async check(pairs) {
      tokensSoFar += pairs;
      const [held, used, tokens] = await Promise.all([first.zcard(EXPIRIES), first.hgetall(USED), first.get(TOKENS)]);
      const counted = Object.values(used).some((count) => count !== "0");
      if (held === 0 && !counted && Number(tokens) === tokensSoFar && (await first.dbsize()) <= 2) return;
      throw new Error(`${held} are held, ${JSON.stringify(used)} counted, ${tokens ?? 0} granted of ${tokensSoFar}`);
    },
    // Its connections are the server's to close.
    close: async () => undefined,
  };
}

const grantSchema = z.tuple([z.string(), z.number()]);

/** Gives the slots of a lease back, if there is such a lease. */
const END = `
  local function finish(lease)
    local holder = redis.call('HGET', '${LEASES}' .. lease, 'holder')
    if not holder then return 0 end
    redis.call('HINCRBY', KEYS[2], 'pool', -1)
    redis.call('HINCRBY', KEYS[2], 'tenant', -1)
    redis.call('HINCRBY', KEYS[2], 'project', -1)
    redis.call('ZREM', KEYS[1], lease)
    redis.call('DEL', '${LEASES}' .. lease, '${HOLDERS}' .. holder)
    return 1
  end`;
const ACQUIRE = `${END}
  local lease, holder, now, expires = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
  for _, over in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[8])) do finish(over) end
  local held = redis.call('GET', '${HOLDERS}' .. holder)
  if held then return { held, tonumber(redis.call('HGET', '${LEASES}' .. held, 'token')) } end
  local used = redis.call('HMGET', KEYS[2], 'pool', 'tenant', 'project')
  for scope = 1, 3 do
    if tonumber(used[scope] or '0') >= tonumber(ARGV[4 + scope]) then return redis.error_reply('no slot is free') end
  end
  redis.call('HINCRBY', KEYS[2], 'pool', 1)
  redis.call('HINCRBY', KEYS[2], 'tenant', 1)
  redis.call('HINCRBY', KEYS[2], 'project', 1)
  local token = redis.call('INCR', KEYS[3])
  redis.call('HSET', '${LEASES}' .. lease, 'holder', holder, 'token', token, 'granted', now)
  redis.call('SET', '${HOLDERS}' .. holder, lease)
  redis.call('ZADD', KEYS[1], expires, lease)
  return { lease, token }`;
const RELEASE = `${END}
  return finish(ARGV[1])`;
