import type { Logger } from "@runtime-cloud/service-kit/logger";
import { createRedisBackend } from "bullmq";
import { Redis } from "ioredis";
import { type QueueBackend, queueBackend } from "./queue-backend.ts";
import { redisMarks } from "./redis-marks.ts";

export interface RedisBackendOptions {
  /** `redis://` or `rediss://`; Redis 7 or Valkey. */
  url: string;
  /** Namespace of every key. Braces are put around it when it has none: a cluster keeps a queue's keys in one slot. */
  prefix: string;
  logger: Logger;
}

const CONNECT_TIMEOUT_MS = 2_000;
const COMMAND_TIMEOUT_MS = 2_000;
/**
 * A connection on which nothing comes for so long, though an answer is due, is replaced: it may be half-open, and would
 * stay so for a quarter of an hour. A worker's blocking reads take up to 10 s by themselves.
 */
const PRODUCER_SILENCE_MS = 4_000;
const CONSUMER_SILENCE_MS = 15_000;
/** How long the other side may take to close; a connection that is closed already keeps the process up for as long. */
const DISCONNECT_TIMEOUT_MS = 200;
const FIRST_RECONNECT_MS = 50;
const MAX_RECONNECT_MS = 2_000;

/** BullMQ's queues over Redis. */
export function redisBackend({ url, prefix: given, logger }: RedisBackendOptions): QueueBackend {
  const prefix = /\{.+\}/.test(given) ? given : `{${given}}`;
  const shared = {
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    retryStrategy: reconnectDelay,
  };
  // A producer must not wait for a Redis that is away: what it adds is in the database and is added again.
  const producer = {
    ...shared,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: PRODUCER_SILENCE_MS,
  };
  // A worker's blocking reads last as long as its queue is empty: a command timeout would fail each of them.
  const consumer = { ...shared, maxRetriesPerRequest: null, socketTimeout: CONSUMER_SILENCE_MS };
  const marks = redisMarks(url, producer, prefix);
  const backend = queueBackend({
    factory: createRedisBackend,
    producer: { url, ...producer },
    consumer: { url, ...consumer },
    prefix,
    logger,
    check: () => checkRedis(url),
  });
  return {
    ...backend,
    marks,
    async close(graceMs) {
      marks.close();
      await backend.close(graceMs);
    },
  };
}

/** Throws when Redis may evict jobs to make room. */
async function checkRedis(url: string): Promise<"ready" | "away"> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    retryStrategy: () => null,
  });
  redis.on("error", () => undefined); // the failed call says it too
  try {
    await redis.connect();
    assertNoEviction(await redis.info("memory"));
    return "ready";
  } catch (error) {
    if (error instanceof EvictingRedis) throw error;
    return "away";
  } finally {
    redis.disconnect();
  }
}

function assertNoEviction(memory: string): void {
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
  if (policy !== undefined && policy !== "noeviction") throw new EvictingRedis(policy);
}

class EvictingRedis extends Error {
  override readonly name = "EvictingRedis";

  constructor(policy: string) {
    super(
      `REDIS_URL: this Redis drops keys when its memory is full (maxmemory-policy is ${policy}), and jobs with them: ` +
        `set it to noeviction, as in \`CONFIG SET maxmemory-policy noeviction\``,
    );
  }
}

function reconnectDelay(times: number): number {
  return Math.min(FIRST_RECONNECT_MS * 2 ** times, MAX_RECONNECT_MS);
}
