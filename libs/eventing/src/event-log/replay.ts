import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventCatalogue } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { ReplayEventsRequest } from "@runtime-cloud/contracts/runtimecloud/eventlog/v1/replay_pb";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import type { NewId } from "@runtime-cloud/service-kit/ids";
import type pg from "pg";
import { logBounds, readLog, refuseAhead, type Stretch } from "./event-log.ts";
import { inboxJob } from "../inbox-job.ts";
import type { NewJob, QueueBackend } from "../queues/queue-backend.ts";
import { reachingQueues } from "./reaching-queues.ts";
import { recordedBetween } from "./recorded-between.ts";

export interface ReplayContext {
  pool: pg.Pool;
  backend: QueueBackend;
  /** Those of the deployment. */
  subscribers: readonly string[];
  newId: NewId;
}

/** How far a replay has come. */
export interface ReplayProgress {
  sent: bigint;
  /** Where to resume. */
  sequence: bigint;
  done: boolean;
}

/**
 * Gives a subscriber's inbox again what the log has of its events, page by page, and tells its progress after each. It
 * ends early when the signal is aborted. A page that was sent twice, since a replay broke off and resumed, does no more
 * than one that was sent once: the subscriber knows an event by its id.
 *
 * Throws InvalidInput for a subscriber or topics that don't fit, OutOfRange for a place to resume that retention has
 * overtaken, Unavailable while the queues are away.
 */
export async function* replayEvents(
  context: ReplayContext,
  request: ReplayEventsRequest,
  { tenantId, signal }: { tenantId: string | undefined; signal: AbortSignal },
): AsyncGenerator<ReplayProgress, void> {
  const { pool, backend, subscribers, newId } = context;
  const topics = topicsFor(request, subscribers);
  const mark = markOf(newId());
  const cursor = request.afterSequence;
  if (cursor !== undefined) refuseAhead(cursor, (await logBounds(pool)).newest);
  const period = await recordedBetween(pool, request);
  const end = period.below - 1n;
  let sequence = cursor ?? period.above;
  let rest: Stretch | undefined = { ...period, above: sequence };
  let sent = 0n;

  while (rest && sequence < end && !signal.aborted) {
    const page = await readLog(pool, { topics, tenantId }, rest, {
      ...(cursor !== undefined && sequence === cursor && { cursor }),
    });
    const jobs = page.entries.map(({ envelope }) => replayJob(envelope, mark));
    if (jobs.length > 0) await reachingQueues(() => backend.add(inboxOf(request.subscriber), jobs));
    sent += BigInt(jobs.length);
    rest = page.rest;
    sequence = rest?.above ?? end;
    if (rest) yield { sent, sequence, done: false };
  }
  if (!signal.aborted) yield { sent, sequence, done: true };
}

/**
 * A job like the first one but for its id: BullMQ takes no notice of a job whose id it still keeps, and it keeps jobs
 * that are done, too.
 */
function replayJob(event: CloudEvent, mark: string): NewJob {
  const job = inboxJob(event);
  return { ...job, opts: { ...job.opts, jobId: `evt_${event.id}_r${mark}` } };
}

const MARK_LENGTH = 8;

/** Tells the jobs of one replay from another's: the random end of an id. */
function markOf(id: string): string {
  return id.slice(-MARK_LENGTH);
}

/** The topics to send. */
function topicsFor({ subscriber, topics }: ReplayEventsRequest, subscribers: readonly string[]): readonly string[] {
  if (!subscribers.includes(subscriber)) {
    const known = [...subscribers].sort().join(", ");
    throw invalid("subscriber", `is none of this deployment's SUBSCRIBERS, which are ${known}`);
  }
  const read = eventCatalogue.filter(({ consumers }) => consumers.includes(subscriber)).map(({ topic }) => topic);
  const unread = topics.filter((topic) => !read.includes(topic));
  if (unread.length > 0) {
    throw invalid("topics", `${unread.join(", ")} isn't for ${subscriber}, which reads ${read.sort().join(", ")}`);
  }
  return topics.length > 0 ? topics : read;
}

function invalid(field: string, description: string): InvalidInput {
  return new InvalidInput([{ field, description }]);
}
