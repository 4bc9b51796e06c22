import { ConfigError } from "@runtime-cloud/service-kit/config";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { SharedSettings } from "@runtime-cloud/service-kit/settings";
import { postgresBackend } from "./postgres-backend.ts";
import type { QueueBackend } from "./queue-backend.ts";
import { redisBackend } from "./redis-backend.ts";

/** The queues that the settings name. Throws ConfigError for a Redis that may drop jobs. */
export async function openBackend(settings: SharedSettings, logger: Logger): Promise<QueueBackend> {
  const backend = chosen(settings, logger);
  try {
    if ((await backend.check()) === "away") logger.warn("the queues are out of reach; work goes on, later");
    return backend;
  } catch (error) {
    await backend.close();
    throw new ConfigError([error instanceof Error ? error.message : String(error)]);
  }
}

function chosen(settings: SharedSettings, logger: Logger): QueueBackend {
  const { REDIS_URL, QUEUE_DATABASE_URL, QUEUE_PREFIX: prefix } = settings;
  if (REDIS_URL !== undefined) return redisBackend({ url: REDIS_URL, prefix, logger });
  if (QUEUE_DATABASE_URL !== undefined) return postgresBackend({ url: QUEUE_DATABASE_URL, prefix, logger });
  throw new Error("settings without REDIS_URL and QUEUE_DATABASE_URL: sharedSettings refuses those");
}
