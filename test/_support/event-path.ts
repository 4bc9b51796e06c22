import { setTimeout as wait } from "node:timers/promises";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { EventHandler } from "@runtime-cloud/eventing/event-handler";
import { type InboxOutcome, startInbox } from "@runtime-cloud/eventing/inbox";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { watchQueues } from "@runtime-cloud/eventing/queues/queue-marks";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { outboxLag, startRelay } from "@runtime-cloud/eventing/relay";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { until } from "@runtime-cloud/local-servers/until";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { PrismaClient } from "../../services/execution-capacity/generated/prisma/client.ts";
import { cause, createQuota, raiseQuota } from "../eventing/quotas.ts";
import type { Tx } from "../eventing/service-database.ts";
import { type EffectLedger, openLedger } from "./effect-ledger.ts";
import { notTakenOnce, outdated, unheard, unpublished } from "./event-invariants.ts";

/** One subscriber takes its events in here, the other one's queue is only filled. */
export const TAKER = "StudioBff";
export const READER = "RunControlService";

export interface EventPathOptions {
  /** ExecutionCapacityService's database. */
  databaseUrl: string;
  redis: { url: string; prefix: string };
  /** The database as a part of the path reaches it, where that isn't by its own URL. */
  by?: { writer?: string; relay?: string; inbox?: string };
  /** Instead of the ledger's own. */
  handler?: (ledger: EffectLedger) => EventHandler<Tx>;
}

/** From a command to a subscriber's effect: outbox, relay, queues, inbox, in this process, on real servers. */
export interface EventPath {
  ledger: EffectLedger;
  backend: QueueBackend;
  /** How each delivery to the inbox ended. */
  outcomes: InboxOutcome[];
  /** Sets a tenant's quota, or raises the one it has. Rejects as the database does. */
  change(tenantId: string): Promise<void>;
  /** Changes so many tenants' quotas again and again, whatever fails. */
  load(tenants: number): Load;
  /** Waits until the path has caught up; answers which promises are broken then: []. */
  broken(withinMs?: number): Promise<string[]>;
  close(): Promise<void>;
}

export interface Load {
  /** Resolves when so many changes were acknowledged since it was asked. */
  acknowledged(more: number): Promise<void>;
  stop(): Promise<void>;
}

const PACE_MS = 20;
const CATCH_UP_MS = 30_000;
const LOAD_MS = 60_000;

export async function openEventPath({ databaseUrl, redis, by = {}, ...options }: EventPathOptions): Promise<EventPath> {
  const logger = silentLogger();
  const open = (url = databaseUrl) => {
    const database = { url, applicationName: "event-path", onError: () => undefined };
    return openDatabase(database, (adapter) => new PrismaClient({ adapter }));
  };
  const [direct, writer, publisher, taker] = [open(), open(by.writer), open(by.relay), open(by.inbox)];
  const contextOf = ({ client }: typeof direct) => ({ client, clock: systemClock, newId: uuidv7, logger });
  const ledger = await openLedger(direct.pool);
  const backend = redisBackend({ ...redis, logger });
  const outcomes: InboxOutcome[] = [];
  const written = new Set<string>();

  const relay = startRelay({ pool: publisher.pool, backend, subscribers: [TAKER, READER], logger });
  const { marks, prefix } = backend;
  const watched = { pool: direct.pool, prefix, service: "event-path", onLoss: relay.wake };
  const watch = marks && watchQueues({ ...watched, marks, newId: uuidv7, logger });
  const inbox = startInbox({
    subscriber: TAKER,
    backend,
    context: contextOf(taker),
    handlers: [options.handler?.(ledger) ?? ledger.handler],
    logger,
    observe: (outcome) => void outcomes.push(outcome),
  });

  async function change(tenantId: string): Promise<void> {
    const row = await unitOfWork(contextOf(writer), cause, async (unit) => {
      const known = await unit.tx.quota.findFirst({ where: { tenantId } });
      return known ? raiseQuota(unit, known.id) : createQuota(unit, tenantId);
    });
    written.add(`${row.id} at version ${row.version}`);
  }

  async function lost(): Promise<string[]> {
    const { rows } = await direct.pool.query<{ change: string }>(
      "SELECT concat(subject, ' at version ', envelope->>'aggregateversion') AS change FROM outbox_message",
    );
    const kept = new Set(rows.map((row) => row.change));
    return [...written]
      .filter((change) => !kept.has(change))
      .map((change) => `${change} was acknowledged, and is lost`);
  }

  async function look(): Promise<string[]> {
    const { rows } = await direct.pool.query<{ id: string }>(
      "SELECT id FROM outbox_message WHERE topic = 'capacity.quotas.v1.quota-changed'",
    );
    const events = rows.map(({ id }) => id);
    const waiting = await backend.queue(inboxOf(READER)).getRanges(["waiting"], 0, -1);
    const heard = new Set(waiting.map((id) => id.replace("evt_", "")));
    const { name: handler } = ledger.handler;
    return [
      ...(await lost()),
      ...(await unpublished(direct.pool)),
      ...(await unheard(direct.pool, READER, heard)),
      ...(await notTakenOnce(direct.pool, { handler, events, effects: await ledger.effects() })),
      ...(await outdated(direct.pool, await ledger.newest())),
    ];
  }

  return {
    ledger,
    backend,
    outcomes,
    change,
    load: (tenants) => startLoad(change, tenants),
    async broken(withinMs = CATCH_UP_MS) {
      const queue = backend.queue(inboxOf(TAKER));
      const caughtUp = async () => {
        if ((await outboxLag(direct.pool)).waiting > 0) return undefined;
        if ((await queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized")) > 0) return undefined;
        return (await look()).length === 0 || undefined;
      };
      // If it never does, the answer tells what it lacks.
      await eventually("an event path that has caught up", caughtUp, withinMs).catch(() => undefined);
      return look();
    },
    async close() {
      await Promise.all([inbox.stop(), relay.stop(), watch?.stop()]);
      await backend.close();
      await Promise.all([direct, writer, publisher, taker].map((database) => database.close()));
    },
  };
}

function startLoad(change: (tenantId: string) => Promise<void>, tenants: number): Load {
  let acknowledged = 0;
  let stopped = false;
  const writers = Array.from({ length: tenants }, async (_, index) => {
    while (!stopped) {
      await change(`tenant-${index}`).then(
        () => (acknowledged += 1),
        () => undefined,
      );
      await wait(PACE_MS);
    }
  });
  return {
    async acknowledged(more) {
      const goal = acknowledged + more;
      await until(`${more} more changes`, LOAD_MS, () => acknowledged >= goal || undefined);
    },
    async stop() {
      stopped = true;
      await Promise.all(writers);
    },
  };
}
