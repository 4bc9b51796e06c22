import type { Logger } from "@runtime-cloud/service-kit/logger";
import { type BackendFactory, type ConnectionOptions, createPostgresBackend, type RedisQueueBackend } from "bullmq";
import { type QueueBackend, queueBackend } from "./queue-backend.ts";

export interface PostgresBackendOptions {
  /** `postgres://…`; its role must be able to create a schema the first time. */
  url: string;
  /** The queues live in a schema that is named after it: `{runtime-cloud}` is `runtime_cloud_queues`. */
  prefix: string;
  logger: Logger;
}

/** Of each queue, and of each worker beside its listening connection. */
const MAX_CONNECTIONS = 2;
const CONNECT_TIMEOUT_MS = 2_000;
/** The first use of all creates the tables, and whoever comes meanwhile waits for that. */
const FIRST_USE_MS = 20_000;

/** BullMQ's queues over PostgreSQL, for a run where no Redis is. */
export function postgresBackend({ url, prefix, logger }: PostgresBackendOptions): QueueBackend {
  const connection = {
    connectionString: url,
    schema: schemaName(prefix),
    migrate: true,
    max: MAX_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  };
  return queueBackend({
    factory,
    producer: connection,
    consumer: connection,
    prefix,
    logger,
    check: () => Promise.resolve("ready"),
    connectMs: FIRST_USE_MS,
  });
}

// BullMQ's classes use a backend by its IQueueBackend interface alone, but their default types, and so the dashboards',
// name the Redis one. This cast is what lets one set of types stand for both.
const factory = createPostgresBackend as unknown as BackendFactory<RedisQueueBackend, ConnectionOptions>;

function schemaName(prefix: string): string {
  const words = prefix.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return [...words, "queues"].join("_").replace(/^(?=\d)/, "_");
}
