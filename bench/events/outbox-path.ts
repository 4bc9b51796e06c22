import { ReconciliationDecidedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/inventory_pb";
import type { CloudEvent } from "@runtime-cloud/eventing/cloud-event";
import { on } from "@runtime-cloud/eventing/event-handler";
import { startInbox } from "@runtime-cloud/eventing/inbox";
import { redisBackend } from "@runtime-cloud/eventing/redis-backend";
import { outboxLag, startRelay } from "@runtime-cloud/eventing/relay";
import { until } from "@runtime-cloud/local-servers/until";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import type pg from "pg";
import { PrismaClient as ProvisioningClient } from "../../services/iac-provisioning/generated/prisma/client.ts";
import { PrismaClient as EnvironmentClient } from "../../services/runtime-environment/generated/prisma/client.ts";
import type { BenchServers } from "../servers.ts";
import { Ledger } from "./ledger.ts";
import type { Path } from "./path.ts";

const SUBSCRIBER = "IaCProvisioningService";
const ROWS_PER_INSERT = 1_000;
/** A page's rows are marked after its jobs are added, so handlers may be faster. */
const MARKED_WITHIN_MS = 10_000;

/**
 * Ours, as it is deployed: from the outbox in RuntimeEnvironmentService's database by relay, Redis and inbox to a handler
 * of IaCProvisioningService, whose receipt is committed in that service's database. It counts from the sending of COMMIT.
 */
export async function openOutboxPath(servers: BenchServers, concurrency: number): Promise<Path> {
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
  const relay = startRelay({ pool: outbox.pool, backend, subscribers: [SUBSCRIBER], logger });
  const inbox = startInbox({
    subscriber: SUBSCRIBER,
    backend,
    context: { client: receipts.client, clock: systemClock, newId: uuidv7, logger },
    handlers: [on(ReconciliationDecidedSchema, "Note", async (_unit, _message, { id }) => ledger.started(id))],
    logger,
    concurrency,
    observe: (outcome) => (outcome === "handled" ? ledger.done() : ledger.wrong(`a delivery was ${outcome}`)),
  });
  let receiptsSoFar = 0;

  return {
    name: "runtime_cloud",
    ledger,
    send: (events) => announce(outbox.pool, events),
    async check(events) {
      ledger.check(events.map(({ id }) => id));
      await until("an outbox that is published whole", MARKED_WITHIN_MS, async () => {
        return (await outboxLag(outbox.pool)).waiting === 0 || undefined;
      });
      receiptsSoFar += events.length;
      await checkReceipts(receipts.pool, events, receiptsSoFar);
    },
    async close() {
      await inbox.stop();
      await relay.stop();
      await backend.close();
      await Promise.all([outbox.close(), receipts.close()]);
    },
  };
}

/** Commits the events in one transaction, as services do, and answers when its COMMIT was sent. */
async function announce(pool: pg.Pool, events: readonly CloudEvent[]): Promise<number> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    for (let from = 0; from < events.length; from += ROWS_PER_INSERT) {
      await client.query(
        `INSERT INTO outbox_message (id, topic, tenant_id, subject, envelope)
         SELECT (event->>'id')::uuid, event->>'type', event->>'tenantid', event->>'subject', event
         FROM jsonb_array_elements($1::jsonb) event`,
        [JSON.stringify(events.slice(from, from + ROWS_PER_INSERT))],
      );
    }
    const committing = performance.now();
    await client.query("COMMIT");
    return committing;
  } finally {
    client.release();
  }
}

async function checkReceipts(pool: pg.Pool, events: readonly CloudEvent[], total: number): Promise<void> {
  const { rows } = await pool.query<{ all: number; ours: number }>(
    `SELECT count(*)::int AS all, (count(*) FILTER (WHERE event_id = ANY($1)))::int AS ours FROM inbox_receipt`,
    [events.map(({ id }) => id)],
  );
  if (rows[0]?.ours === events.length && rows[0].all === total) return;
  throw new Error(`receipts are ${JSON.stringify(rows[0])}, and should be ${events.length} of ${total} in all`);
}
