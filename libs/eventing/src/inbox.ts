import { type CloudEvent, MalformedEvent, parseCloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventOf } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { EventHandler } from "./event-handler.ts";
import { gather } from "./gather.ts";
import { neutralFailure } from "./queues/neutral-failure.ts";
import type { QueueBackend } from "./queues/queue-backend.ts";
import type { SqlTransaction } from "./sql-transaction.ts";
import { type Delivery, takeIn, takeInTogether } from "./take-in.ts";
import type { UnitContext } from "./unit-of-work.ts";

export interface InboxOptions<Tx> {
  /** The service's name in the catalogue, for example `IaCProvisioningService`. */
  subscriber: string;
  backend: QueueBackend;
  context: UnitContext<Tx>;
  handlers: readonly EventHandler<Tx>[];
  logger: Logger;
  /** How many events are in work at once. */
  concurrency?: number;
  /** Told how every delivery ended, for metrics. */
  observe?: (outcome: InboxOutcome, topic: string) => void;
}

/** `unknown`: nobody here handles the topic. `parked`: in the queue's failed jobs, until `redriveParked`. */
export type InboxOutcome = "handled" | "duplicate" | "unknown" | "retried" | "parked";

export interface Inbox {
  /** Takes no more events, and waits for those in work. */
  stop(): Promise<void>;
}

const CONCURRENCY = 256;
/** Events that are in work share transactions: this many at once, of no more events than this. */
const LANES = 2;
const LARGEST_BATCH = 100;
/** Transactions of one event at once, for those that can't share. */
const LANES_ALONE = 4;
/** A transaction's rows are locked as long as it takes. */
const TARGET_MS = 100;

/** Takes in a subscriber's events. One that fails is tried again later, and in the end parked; the others go on. */
export function startInbox<Tx extends SqlTransaction>(options: InboxOptions<Tx>): Inbox {
  const { subscriber, backend, context, logger, concurrency = CONCURRENCY, observe = () => undefined } = options;
  const handlersOf = byTopic(options.handlers);
  const alone = gather<Delivery<Tx>, boolean>({
    work: (deliveries) => Promise.allSettled(deliveries.map((delivery) => takeIn(context, delivery))),
    lanes: LANES_ALONE,
    largest: 1,
    targetMs: TARGET_MS,
  });
  const together = gather<Delivery<Tx>, boolean>({
    work: (deliveries) => takeInTogether(context, deliveries, alone),
    lanes: LANES,
    largest: LARGEST_BATCH,
    targetMs: TARGET_MS,
  });

  const worker = backend.worker(
    inboxOf(subscriber),
    async (job) => {
      try {
        const deliveries = deliveriesOf(parseCloudEvent(job.data), handlersOf);
        // One that failed before doesn't spoil it for others again.
        const outcome = await outcomeOf(deliveries.map(job.attemptsMade === 0 ? together : alone));
        observe(outcome, job.name);
        return outcome;
      } catch (err) {
        const lastTry = job.attemptsMade + 1 >= (job.opts.attempts ?? 1);
        const parked = lastTry || err instanceof MalformedEvent;
        observe(parked ? "parked" : "retried", job.name);
        if (parked) logger.error({ err, jobId: job.id, topic: job.name }, "event parked");
        else logger.info({ err, jobId: job.id, topic: job.name }, "event will be tried again");
        throw neutralFailure(err);
      }
    },
    { concurrency },
  );
  return { stop: () => worker.close() };
}

/** Throws MalformedEvent. */
function deliveriesOf<Tx>(
  event: CloudEvent,
  handlersOf: ReadonlyMap<string, readonly EventHandler<Tx>[]>,
): Delivery<Tx>[] {
  const handlers = handlersOf.get(event.type) ?? [];
  return handlers.map((handler) => ({ event, handler: handler.name, work: handler.prepare(event) }));
}

/** Of one event, by whether each of its handlers had it new. One that fails lets the others end, and is thrown. */
async function outcomeOf(fresh: readonly Promise<boolean>[]): Promise<InboxOutcome> {
  if (fresh.length === 0) return "unknown";
  await Promise.allSettled(fresh);
  return (await Promise.all(fresh)).includes(true) ? "handled" : "duplicate";
}

function byTopic<Tx>(handlers: readonly EventHandler<Tx>[]): Map<string, EventHandler<Tx>[]> {
  const grouped = new Map<string, EventHandler<Tx>[]>();
  for (const handler of handlers) {
    const { topic } = eventOf(handler.schema);
    grouped.set(topic, [...(grouped.get(topic) ?? []), handler]);
  }
  return grouped;
}
