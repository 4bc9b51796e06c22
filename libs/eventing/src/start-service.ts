import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { EventLogService } from "@runtime-cloud/contracts/runtimecloud/eventlog/v1/event_log_service_pb";
import { startAdmin } from "@runtime-cloud/service-kit/admin";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { createHealth } from "@runtime-cloud/service-kit/health";
import { identify } from "@runtime-cloud/service-kit/identity";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { standardInterceptors } from "@runtime-cloud/service-kit/interceptors";
import type { Running } from "@runtime-cloud/service-kit/lifecycle";
import { listeningAt } from "@runtime-cloud/service-kit/listen-problem";
import type { LocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import { createMetrics } from "@runtime-cloud/service-kit/metrics";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { serve } from "@runtime-cloud/service-kit/serve";
import type { SharedSettings } from "@runtime-cloud/service-kit/settings";
import { Started } from "@runtime-cloud/service-kit/started";
import { tlsFromSettings } from "@runtime-cloud/service-kit/tls";
import { DASHBOARD_PATH, dashboard } from "./queues/dashboard.ts";
import { databaseNow } from "./database-clock.ts";
import { deadlinesOf, startDeadlines } from "./deadlines.ts";
import { startInbox } from "./inbox.ts";
import { openBackend } from "./queues/open-backend.ts";
import { watchQueues } from "./queues/queue-marks.ts";
import { startRelay } from "./relay.ts";
import { startRetention } from "./event-log/retention.ts";
import type { ServiceContext } from "./service-context.ts";
import type { DatabaseClient, ServiceDefinition } from "./service-definition.ts";
import { serviceMetrics } from "./service-metrics.ts";
import { serviceProbes } from "./service-probes.ts";
import type { SqlTransaction } from "./sql-transaction.ts";
import { startEventLog } from "./event-log/start-event-log.ts";
import { refuseUnknownSubscribers } from "./subscribers.ts";
import { enqueueWork } from "./queues/work-queue.ts";

/** After its grace, a service writes down what ended and closes its connections. */
const CLOSING_MS = 8_000;

export interface RunningService extends Running {
  url: string;
  adminUrl: string;
  /** Of this service, for a dashboard over several. */
  queues: readonly string[];
  /** Mints tokens in a local run, where no issuer is configured. */
  localIssuer: LocalIssuer | undefined;
}

/**
 * Brings a service up: database, queues, relay, inbox, deadlines, API, admin. It starts whatever the others do, and
 * without its database or queues too: then it is not ready until they are there. Rejects with ConfigError for settings
 * that turn out to be wrong; whatever was started by then is stopped again.
 *
 * `stop` drains: health says NOT_SERVING; calls under way end, and beside them workers take no more and finish; then
 * connections close.
 */
export async function startService<
  Client extends DatabaseClient<Tx>,
  Tx extends SqlTransaction,
  Settings extends SharedSettings,
>(definition: ServiceDefinition<Client, Tx, Settings>, given: Settings, logger: Logger): Promise<RunningService> {
  const started = new Started();
  try {
    return await start(definition, given, logger, started);
  } catch (error) {
    await started
      .stop()
      .catch((err: unknown) => logger.warn({ err }, "what was started before a failure stays behind"));
    throw error;
  }
}

async function start<Client extends DatabaseClient<Tx>, Tx extends SqlTransaction, Settings extends SharedSettings>(
  definition: ServiceDefinition<Client, Tx, Settings>,
  given: Settings,
  logger: Logger,
  started: Started,
): Promise<RunningService> {
  const { name, subscriber } = definition;
  refuseUnknownSubscribers(given.SUBSCRIBERS);
  const { verifier, settings, localIssuer } = await identify(given, { subject: subscriber, scopes: allScopes });
  const tls = await tlsFromSettings(settings);
  const database = openDatabase(
    {
      url: settings.DATABASE_URL,
      applicationName: name,
      maxConnections: settings.DATABASE_MAX_CONNECTIONS,
      onError: (err) => logger.warn({ err }, "an idle database connection broke"),
    },
    definition.client,
  );
  started.add(() => database.close());
  const { client, pool } = database;
  const backend = await openBackend(settings, logger);
  const graceMs = settings.SHUTDOWN_GRACE_SECONDS * 1_000;
  started.add(() => backend.close(graceMs));

  const context: ServiceContext<Client, Settings> = {
    client,
    pool,
    settings,
    clock: systemClock,
    newId: uuidv7,
    logger,
    announced() {
      relay.wake();
      eventLog.wake();
    },
    arm: (kind, at, label) => deadlines.arm(kind, at, label),
    enqueue: (queue, id, data) => enqueueWork(backend, queue, id, data),
  };
  const metrics = createMetrics({ service: name });
  const parts = await definition.parts(context, metrics.registry);
  started.add(async () => parts.stop?.());

  const relay = startRelay({ pool, backend, subscribers: settings.SUBSCRIBERS, logger });
  const { marks, prefix } = backend;
  const watch = marks && watchQueues({ pool, marks, prefix, service: name, onLoss: relay.wake, newId: uuidv7, logger });
  const { SUBSCRIBERS: subscribers } = settings;
  const eventLog = startEventLog({ pool, backend, subscriber, subscribers, newId: uuidv7, logger });
  const retention = startRetention({ pool, settings, logger, registry: metrics.registry });
  started.add(() => Promise.all([relay.stop(), watch?.stop(), eventLog.stop(), retention.stop()]));
  const observe = serviceMetrics(metrics.registry, relay, pool);
  const { handlers } = parts;
  // An inbox without handlers would take its events in, and do nothing about them.
  const inbox =
    handlers.length > 0
      ? startInbox({ subscriber, backend, context, handlers, logger, observe: observe.inbox })
      : undefined;
  const deadlines = startDeadlines({
    service: name,
    backend,
    deadlines: parts.deadlines,
    logger,
    clock: systemClock,
    databaseNow: () => databaseNow(pool),
    observe: observe.deadline,
  });
  const workers = parts.workQueues.map((queue) => queue.start(backend, logger));
  const stopWorking = () =>
    Promise.all([...workers.map((worker) => worker.close(graceMs)), inbox?.stop(), deadlines.stop()]);
  started.add(stopWorking);

  const services = [...parts.services, EventLogService.typeName];
  const health = createHealth({ services, probes: serviceProbes(pool) });
  const { HOST, PORT, ADMIN_HOST, ADMIN_PORT } = settings;
  const api = await listeningAt(
    { host: HOST, port: PORT, hostVariable: "HOST", portVariable: "PORT" },
    serve({
      host: HOST,
      port: PORT,
      routes: (router) => {
        parts.routes(router);
        eventLog.routes(router);
      },
      interceptors: standardInterceptors({ logger, verifier, metrics }),
      services,
      health,
      logger,
      graceMs,
      ...(tls && { tls }),
    }),
  );
  // Work that takes long hears of the end at once, not when the last call is answered: the two share one grace. What
  // those calls still wake is waited for by the stop before this one.
  started.add(() => Promise.all([api.drain(), stopWorking()]));
  const admin = await listeningAt(
    { host: ADMIN_HOST, port: ADMIN_PORT, hostVariable: "ADMIN_HOST", portVariable: "ADMIN_PORT" },
    startAdmin({ host: ADMIN_HOST, port: ADMIN_PORT, health, metrics, verifier, logger }),
  );
  started.addLast(() => admin.close());
  const queues = [inboxOf(subscriber), deadlinesOf(name), ...parts.workQueues.map((queue) => queue.name)];
  admin.mount(DASHBOARD_PATH, dashboard(backend, queues));
  logger.info({ url: api.url, admin: admin.url }, `${name} listens`);

  const stopWithinMs = graceMs + CLOSING_MS;
  return { url: api.url, adminUrl: admin.url, queues, localIssuer, stopWithinMs, stop: () => started.stop() };
}
