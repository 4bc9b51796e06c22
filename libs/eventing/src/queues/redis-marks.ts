import { Redis, type RedisOptions } from "ioredis";
import type { QueueMarks } from "./queue-marks.ts";

/** Marks as keys beside the queues', under the same prefix. */
export function redisMarks(url: string, options: RedisOptions, prefix: string): QueueMarks & { close(): void } {
  const redis = new Redis(url, { ...options, lazyConnect: true });
  redis.on("error", () => undefined); // the failed command says it too
  const keyOf = (service: string) => `${prefix}:mark:${service}`;
  return {
    async read(service) {
      if (redis.status === "wait") await redis.connect();
      return (await redis.get(keyOf(service))) ?? undefined;
    },
    async write(service, mark) {
      await redis.set(keyOf(service), mark);
    },
    close: () => redis.disconnect(),
  };
}
