import { ReconciliationDecidedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/inventory_pb";
import { on } from "@runtime-cloud/eventing/event-handler";
import { startInbox } from "@runtime-cloud/eventing/inbox";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { outboxLag, type Relay, startRelay } from "@runtime-cloud/eventing/relay";
import { startEventLog } from "@runtime-cloud/eventing/event-log/start-event-log";
import { until } from "@runtime-cloud/local-servers/until";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { PrismaClient as ProvisioningClient } from "../../services/iac-provisioning/generated/prisma/client.ts";
import { PrismaClient as EnvironmentClient } from "../../services/runtime-environment/generated/prisma/client.ts";
import type { BenchServers } from "../servers.ts";
import { Ledger } from "./ledger.ts";
import { announce } from "./outbox-rows.ts";
import type { Path } from "./path.ts";
import { checkReceipts } from "./receipts.ts";

export interface OutboxPath extends Path {
  /** From now on what is announced stays in the outbox. */
  holdBack(): Promise<void>;
  /** Publishes what was held back; answers from when (`performance.now()`) it does. */
  letGo(): number;
}

const PRODUCER = "RuntimeEnvironmentService";
const SUBSCRIBER = "IaCProvisioningService";
/** A page's rows are marked after its jobs are added, and put in order beside that, so handlers may be faster. */
const SETTLED_WITHIN_MS = 10_000;

/**
 * Ours, as it is deployed: from the outbox in RuntimeEnvironmentService's database, where every event gets its place in
 * the log, by relay, Redis and inbox to a handler of IaCProvisioningService, whose receipt is committed in that
 * service's database. It counts from the sending of COMMIT.
 */
export async function openOutboxPath(servers: BenchServers): Promise<OutboxPath> {
  const ledger = new Ledger();
  const options = { applicationName: "bench", onError: (error: Error) => ledger.wrong(error.message) };
  const logger = createLogger({ service: "bench", level: "warn", pretty: true, destination: process.stderr });
  const outbox = openDatabase(
    { ...options, url: await servers.database("runtime-environment") },
    (adapter) => new EnvironmentClient({ adapter }),
  );
  const receipts = openDatabase(
    { ...options, url: await servers.database("iac-provisioning") },
    (adapter) => new ProvisioningClient({ adapter }),
  );
  const backend = redisBackend({ url: servers.redisUrl, prefix: "bench-runtime-cloud", logger });
  const source = { pool: outbox.pool, backend, subscribers: [SUBSCRIBER], logger };
  const start = () => startRelay(source);
  const eventLog = startEventLog({ ...source, subscriber: PRODUCER, newId: uuidv7 });
  let relay: Relay | undefined = start();
  const inbox = startInbox({
    subscriber: SUBSCRIBER,
    backend,
    context: { client: receipts.client, clock: systemClock, newId: uuidv7, logger },
    handlers: [on(ReconciliationDecidedSchema, "Note", async (_unit, _message, { id }) => ledger.started(id))],
    logger,
    observe: (outcome) => (outcome === "handled" ? ledger.done() : ledger.wrong(`a delivery was ${outcome}`)),
  });
  let receiptsSoFar = 0;

  return {
    name: "runtime_cloud",
    about: "relay, event log and inbox with their defaults",
    ledger,
    async send(events) {
      const committing = await announce(outbox.pool, events);
      // As a service does after its commit.
      relay?.wake();
      eventLog.wake();
      return committing;
    },
    async holdBack() {
      await relay?.stop();
      relay = undefined;
    },
    letGo() {
      const now = performance.now();
      relay ??= start();
      return now;
    },
    async check(eventIds) {
      ledger.check(eventIds);
      await until("an outbox that is published whole and in order", SETTLED_WITHIN_MS, async () => {
        const { rows } = await outbox.pool.query("SELECT FROM unsequenced_event LIMIT 1");
        return (rows.length === 0 && (await outboxLag(outbox.pool)).waiting === 0) || undefined;
      });
      receiptsSoFar += eventIds.length;
      await checkReceipts(receipts.pool, eventIds, receiptsSoFar);
    },
    async close() {
      await inbox.stop();
      await Promise.all([relay?.stop(), eventLog.stop()]);
      await backend.close();
      await Promise.all([outbox.close(), receipts.close()]);
    },
  };
}
