import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { EventLogService } from "@runtime-cloud/contracts/runtimecloud/eventlog/v1/event_log_service_pb";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { LoggedEvent } from "@runtime-cloud/contracts/runtimecloud/eventlog/v1/events_pb";
import type { JobQueue } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { type RunningService, startService } from "@runtime-cloud/eventing/start-service";
import { executionCapacity } from "@runtime-cloud/execution-capacity/definition";
import { readConfig } from "@runtime-cloud/service-kit/config";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { openServiceDatabase, type ServiceDatabase } from "../../eventing/service-database.ts";
import { testRedis } from "../../_support/redis.ts";

export type LogClient = Client<typeof EventLogService>;

/** ExecutionCapacityService whole, on a database of its own and queues of its own: what is logged is what it announces. */
export interface LogService {
  database: ServiceDatabase;
  running: RunningService;
  /** The service as a tenant calls it, over a connection of its own. */
  as(tenant: string, scopes?: readonly string[]): Promise<LogClient>;
  queue(subscriber: string): JobQueue;
  /** Another process of the same service. */
  replica(): Promise<{ running: RunningService; as: LogService["as"] }>;
  close(): Promise<void>;
}

export function eventId({ envelope }: Pick<LoggedEvent, "envelope">): string {
  const id = envelope?.["id"];
  if (typeof id === "string") return id;
  throw new Error("an envelope has an id");
}

export const SUBSCRIBERS = ["ExecutionCapacityService", "StudioBff", "RunControlService"];

/** `changes` are settings. */
export async function startLogService(changes: Record<string, string> = {}): Promise<LogService> {
  const database = await openServiceDatabase();
  const folder = await mkdtemp(join(tmpdir(), "event-log-"));
  const redis = testRedis();
  const logger = silentLogger();
  const backend = redisBackend({ ...redis, logger });
  const closing: (() => Promise<void>)[] = [];

  async function replica() {
    const config = readConfig(executionCapacity.settings, {
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      QUEUE_PREFIX: redis.prefix,
      SUBSCRIBERS: SUBSCRIBERS.join(","),
      LOCAL_ISSUER_FILE: join(folder, "issuer.json"),
      SHUTDOWN_GRACE_SECONDS: "5",
      PORT: "0",
      ADMIN_PORT: "0",
      ...changes,
    });
    const running = await startService(executionCapacity, config, logger);
    closing.push(() => running.stop());
    return { running, as: (tenant: string, scopes = allScopes) => clientOf(running, tenant, scopes) };
  }

  async function clientOf(running: RunningService, tenant: string, scopes: readonly string[]): Promise<LogClient> {
    const token = await running.localIssuer?.issue({ subject: `operator of ${tenant}`, tenant, scopes });
    const transport = createGrpcJsTransport({ address: new URL(running.url).host, token: () => token ?? "" });
    closing.push(async () => transport.close());
    return createClient(EventLogService, transport);
  }

  const first = await replica();
  // A process compiles its validation rules at its first call, and waits for nothing else meanwhile.
  await (await first.as("nobody")).listEvents({});
  return {
    ...first,
    database,
    queue: (subscriber) => backend.queue(inboxOf(subscriber)),
    replica,
    async close() {
      for (const close of closing.reverse()) await close();
      await backend.close();
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
