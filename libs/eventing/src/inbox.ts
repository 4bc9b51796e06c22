import type { Logger } from "@runtime-cloud/service-kit/logger";
import { eventCause } from "./cause.ts";
import { type CloudEvent, MalformedEvent, parseCloudEvent } from "./cloud-event.ts";
import { eventOf } from "./event-catalogue.ts";
import type { EventHandler } from "./event-handler.ts";
import { inboxOf } from "./inbox-job.ts";
import { neutralFailure } from "./neutral-failure.ts";
import type { QueueBackend } from "./queue-backend.ts";
import type { SqlTransaction } from "./sql-transaction.ts";
import { type UnitContext, unitOfWork } from "./unit-of-work.ts";

export interface InboxOptions<Tx> {
  /** The service's name in the catalogue, for example `IaCProvisioningService`. */
  subscriber: string;
  backend: QueueBackend;
  context: UnitContext<Tx>;
  handlers: readonly EventHandler<Tx>[];
  logger: Logger;
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

const CONCURRENCY = 8;

/** Takes in a subscriber's events. One that fails is tried again later, and in the end parked; the others go on. */
export function startInbox<Tx extends SqlTransaction>(options: InboxOptions<Tx>): Inbox {
  const { subscriber, backend, context, logger, concurrency = CONCURRENCY, observe = () => undefined } = options;
  const handlersOf = byTopic(options.handlers);

  const worker = backend.worker(
    inboxOf(subscriber),
    async (job) => {
      try {
        const outcome = await takeIn(parseCloudEvent(job.data), handlersOf, context);
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

async function takeIn<Tx extends SqlTransaction>(
  event: CloudEvent,
  handlersOf: ReadonlyMap<string, EventHandler<Tx>[]>,
  context: UnitContext<Tx>,
): Promise<InboxOutcome> {
  const handlers = handlersOf.get(event.type);
  if (!handlers) return "unknown";
  let outcome: InboxOutcome = "duplicate";
  for (const handler of handlers) {
    if (await handleOnce(event, handler, context)) outcome = "handled";
  }
  return outcome;
}

/** False when the handler has had this event before. */
async function handleOnce<Tx extends SqlTransaction>(
  event: CloudEvent,
  handler: EventHandler<Tx>,
  context: UnitContext<Tx>,
): Promise<boolean> {
  const work = handler.prepare(event);
  return unitOfWork(context, eventCause(event, handler.name), async (unit) => {
    // A second delivery at the same moment waits here for the first one's end.
    const receipts = await unit.tx.$executeRaw`
      INSERT INTO inbox_receipt (event_id, handler) VALUES (${event.id}::uuid, ${handler.name})
      ON CONFLICT DO NOTHING`;
    if (receipts === 0) return false;
    await work(unit);
    return true;
  });
}

function byTopic<Tx>(handlers: readonly EventHandler<Tx>[]): Map<string, EventHandler<Tx>[]> {
  const grouped = new Map<string, EventHandler<Tx>[]>();
  for (const handler of handlers) {
    const { topic } = eventOf(handler.schema);
    grouped.set(topic, [...(grouped.get(topic) ?? []), handler]);
  }
  return grouped;
}
