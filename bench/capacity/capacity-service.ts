import { createClient, createRouterTransport } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { databaseNow } from "@runtime-cloud/eventing/database-clock";
import { startDeadlines } from "@runtime-cloud/eventing/deadlines";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import type { Context } from "@runtime-cloud/execution-capacity/context";
import { deadlines as deadlinesOf } from "@runtime-cloud/execution-capacity/deadlines";
import { type LeaseDesk, openLeaseDesk } from "@runtime-cloud/execution-capacity/desk/lease-desk";
import { openLeaseNews } from "@runtime-cloud/execution-capacity/leases/lease-news";
import { settings } from "@runtime-cloud/execution-capacity/settings";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import pg from "pg";
import { PrismaClient } from "../../services/execution-capacity/generated/prisma/client.ts";

/** ExecutionCapacityService without its API: what is called is its desk. */
export interface CapacityService {
  readonly context: Context;
  readonly desk: LeaseDesk;
  /** The same database for whoever prepares and checks: connections of their own, without the service's time limits. */
  readonly aside: pg.Pool;
  close(): Promise<void>;
}

export interface CapacityServiceOptions {
  readonly databaseUrl: string;
  /** Its wake-ups' Redis. Undefined: nothing ends by time. */
  readonly redisUrl?: string;
  /** The service's own number when absent. */
  readonly connections?: number;
}

/** As `startService` makes it, but for the relay and the event log, which are `events`' to measure. */
export function openCapacityService({ databaseUrl, redisUrl, connections }: CapacityServiceOptions): CapacityService {
  const logger = createLogger({ service: "bench", level: "warn", pretty: true, destination: process.stderr });
  const database = openDatabase(
    {
      url: databaseUrl,
      applicationName: "bench",
      onError: (err) => logger.warn({ err }, "a connection broke"),
      ...(connections !== undefined && { maxConnections: connections }),
    },
    (adapter) => new PrismaClient({ adapter }),
  );
  const { client, pool } = database;
  const news = openLeaseNews({ client, logger });
  const context: Context = {
    client,
    pool,
    news,
    settings: settings.parse({
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl ?? "redis://unused",
      SUBSCRIBERS: "ExecutionCapacityService",
    }),
    clock: systemClock,
    newId: uuidv7,
    logger,
    announced: () => undefined,
    arm: async (kind, at, label) => wakes?.deadlines.arm(kind, at, label),
    enqueue: async () => undefined,
    // No pool here is elastic, so nobody calls it.
    provisioning: {
      rpc: createClient(
        IaCProvisioningService,
        createRouterTransport(() => undefined),
      ),
      close: () => undefined,
    },
  };
  const desk = openLeaseDesk(context);
  const aside = new pg.Pool({ connectionString: databaseUrl });
  const wakes = redisUrl === undefined ? undefined : startWakes(context, desk, redisUrl);
  return {
    context,
    desk,
    aside,
    async close() {
      await wakes?.stop();
      await news.stop();
      await database.close();
      await aside.end();
    },
  };
}

function startWakes(context: Context, desk: LeaseDesk, url: string) {
  const { logger, clock, pool } = context;
  const backend = redisBackend({ url, prefix: "bench-capacity", logger });
  const deadlines = startDeadlines({
    service: "execution-capacity",
    backend,
    deadlines: deadlinesOf(context, desk),
    logger,
    clock,
    databaseNow: () => databaseNow(pool),
  });
  return {
    deadlines,
    async stop() {
      await deadlines.stop();
      await backend.close();
    },
  };
}
