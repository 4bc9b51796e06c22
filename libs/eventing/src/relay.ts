import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventCatalogue } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import type pg from "pg";
import { inboxJob } from "./inbox-job.ts";
import type { QueueBackend } from "./queues/queue-backend.ts";
import { refuseUnknownSubscribers } from "./subscribers.ts";
import { wakeable } from "./wake.ts";

export interface RelayOptions {
  /** The database whose outbox it publishes. */
  pool: pg.Pool;
  backend: QueueBackend;
  /** The services of this deployment that events are delivered to, by their names in the catalogue. */
  subscribers: readonly string[];
  logger: Logger;
  /** Source of the backoff's jitter, from 0 to 1. */
  random?: () => number;
  pollMs?: number;
}

export interface Relay {
  /** Publishes now what is committed; its poll does it anyway, a second later. */
  wake(): void;
  lag(): Promise<OutboxLag>;
  /** Finishes the page under way. */
  stop(): Promise<void>;
}

export interface OutboxLag {
  /** How many events wait to be published. */
  waiting: number;
  /** Age of the oldest of them, 0 when none waits. */
  oldestSeconds: number;
}

const PAGE = 500;
/** Found by the poll: what another process committed and didn't publish before it died. */
const POLL_MS = 1_000;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;

/**
 * Publishes the outbox: every event goes to the inbox of each subscriber that the catalogue names and the deployment
 * has. Several relays share the work. An event is published at least once, in no certain order. Throws ConfigError for
 * a subscriber that the catalogue doesn't know.
 */
export function startRelay({ pool, backend, subscribers, logger, ...options }: RelayOptions): Relay {
  const { random = Math.random, pollMs = POLL_MS } = options;
  const consumersOf = deliveries(subscribers);
  const pause = wakeable();
  /** What wakes a relay has no say while it can't publish: it would try again with each commit. */
  const recovery = wakeable();
  let stopped = false;

  const loop = (async () => {
    let marked: Promise<void> = Promise.resolve();
    for (let failures = 0; !stopped;) {
      try {
        const page = await deliverPage(pool, backend, consumersOf);
        const before = marked;
        // Meanwhile the next page is on its way; the rows of this one are locked until then.
        marked = page.mark();
        marked.catch(() => undefined); // the next turn, or the end, sees it
        await before;
        if (failures > 0) logger.info({ failures }, "relay publishes again");
        failures = 0;
        if (page.size < PAGE && !stopped) await pause.sleep(pollMs);
      } catch (err) {
        failures += 1;
        const level = failures === 1 ? "warn" : "debug";
        logger[level](
          { err, failures },
          "relay can't publish now; the events stay in the outbox, and it goes on trying",
        );
        if (!stopped) await recovery.sleep(backoff(failures, random));
      }
    }
    await marked.catch((err: unknown) => logger.warn({ err }, "the last events are published once more later"));
  })();

  return {
    wake: pause.wake,
    lag: () => outboxLag(pool),
    async stop() {
      stopped = true;
      pause.wake();
      recovery.wake();
      await loop;
    },
  };
}

/** How far the outbox is behind, by the database's clock. */
export async function outboxLag(pool: pg.Pool): Promise<OutboxLag> {
  const { rows } = await pool.query<OutboxLag>(
    `SELECT count(*)::int AS waiting,
            coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8 AS "oldestSeconds"
     FROM outbox_message WHERE published_at IS NULL`,
  );
  return rows[0] ?? { waiting: 0, oldestSeconds: 0 };
}

/**
 * The page's rows stay locked until they are marked, so no other relay takes them, and a relay that dies gives them
 * back. Topics that this version doesn't know are left to the newer one that wrote them.
 */
async function deliverPage(pool: pg.Pool, backend: QueueBackend, consumersOf: Deliveries): Promise<Page> {
  const client = await pool.connect();
  try {
    // A mark that a crash of the database loses costs a second delivery, no event.
    await client.query("BEGIN; SET LOCAL synchronous_commit = off");
    // The mark's lock, had before the rows are looked for, keeps a look at the queues from overtaking the page.
    const { rows } = await client.query<OutboxRow>(
      `WITH mark AS MATERIALIZED (SELECT FROM queue_mark WHERE prefix = $3 FOR SHARE)
       SELECT id, topic, envelope FROM outbox_message
       WHERE published_at IS NULL AND topic = ANY($1) AND (SELECT count(*) FROM mark) >= 0
       ORDER BY position LIMIT $2 FOR UPDATE SKIP LOCKED`,
      [[...consumersOf.keys()], PAGE, backend.prefix],
    );
    await deliver(backend, rows, consumersOf);
    return { size: rows.length, mark: () => mark(client, rows) };
  } catch (error) {
    await giveUp(client);
    throw error;
  }
}

async function mark(client: pg.PoolClient, rows: readonly OutboxRow[]): Promise<void> {
  try {
    if (rows.length > 0) {
      const ids = rows.map(({ id }) => id);
      await client.query("UPDATE outbox_message SET published_at = clock_timestamp() WHERE id = ANY($1)", [ids]);
    }
    await client.query("COMMIT");
  } catch (error) {
    await giveUp(client);
    throw error;
  }
  client.release();
}

async function giveUp(client: pg.PoolClient): Promise<void> {
  let broken = false;
  await client.query("ROLLBACK").catch(() => (broken = true));
  client.release(broken);
}

async function deliver(backend: QueueBackend, rows: OutboxRow[], consumersOf: Deliveries): Promise<void> {
  const bySubscriber = new Map<string, CloudEvent[]>();
  for (const { topic, envelope } of rows) {
    for (const subscriber of consumersOf.get(topic) ?? []) {
      const events = bySubscriber.get(subscriber) ?? [];
      bySubscriber.set(subscriber, events);
      events.push(envelope);
    }
  }
  await Promise.all(
    [...bySubscriber].map(([subscriber, events]) => backend.add(inboxOf(subscriber), events.map(inboxJob))),
  );
}

/** Of every topic in the catalogue, its consumers that this deployment has. */
function deliveries(subscribers: readonly string[]): Deliveries {
  refuseUnknownSubscribers(subscribers);
  return new Map(
    eventCatalogue.map(({ topic, consumers }) => [topic, consumers.filter((name) => subscribers.includes(name))]),
  );
}

/** Full jitter: relays that lost the same Redis don't come back at the same instant. */
function backoff(failures: number, random: () => number): number {
  return (0.5 + random() / 2) * Math.min(FIRST_BACKOFF_MS * 2 ** failures, MAX_BACKOFF_MS);
}

interface OutboxRow {
  id: string;
  topic: string;
  envelope: CloudEvent;
}

/** Consumers by topic. */
type Deliveries = ReadonlyMap<string, readonly string[]>;

/** Events that are in the queues, and not marked so yet. */
interface Page {
  size: number;
  /** Commits it. */
  mark(): Promise<void>;
}
