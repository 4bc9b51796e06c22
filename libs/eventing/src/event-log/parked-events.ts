import { z } from "zod";
import type { JobQueue, QueueJob } from "../queues/queue-backend.ts";

/** An event in a queue's failed jobs. */
export interface Parked {
  topic: string;
  /** Empty when what came is no event. */
  eventId: string;
  tenantId: string;
  attempts: number;
  /** In neutral words: `neutralFailure` let nothing else into the queue. */
  reason: string;
  failedAt: Date | undefined;
}

/** Which are meant; what is undefined or empty lets everything through. */
export interface ParkedFilter {
  topics?: readonly string[];
  eventIds?: readonly string[];
  tenantId?: string | undefined;
}

export interface ParkedPage {
  events: Parked[];
  /** Where the next page starts, or undefined on the last one. */
  next: number | undefined;
}

/** Jobs that are fetched at a time. */
export const PARKED_CHUNK = 200;

/** Up to `size` parked events, oldest failure first, from a place among all of them. */
export async function parkedEvents(
  queue: JobQueue,
  filter: ParkedFilter,
  { from, size }: { from: number; size: number },
): Promise<ParkedPage> {
  const events: Parked[] = [];
  for (let place = from; ;) {
    const jobs = await oldestParked(queue, place, PARKED_CHUNK);
    for (const job of jobs) {
      if (matches(job, filter)) {
        if (events.length === size) return { events, next: place };
        events.push(parked(job));
      }
      place += 1;
    }
    if (jobs.length < PARKED_CHUNK) return { events, next: undefined };
  }
}

/** So many failed jobs from a place on, oldest failure first. */
export function oldestParked(queue: JobQueue, place: number, count: number): Promise<QueueJob[]> {
  return queue.getJobs(["failed"], place, place + count - 1, true);
}

export function matches(job: QueueJob, { topics = [], eventIds = [], tenantId }: ParkedFilter): boolean {
  const event = glimpse(job);
  return (
    (topics.length === 0 || topics.includes(job.name)) &&
    (eventIds.length === 0 || eventIds.includes(event.id)) &&
    (tenantId === undefined || tenantId === event.tenantid)
  );
}

function parked(job: QueueJob): Parked {
  const { id, tenantid } = glimpse(job);
  return {
    topic: job.name,
    eventId: id,
    tenantId: tenantid,
    attempts: job.attemptsMade,
    reason: job.failedReason,
    failedAt: job.finishedOn === undefined ? undefined : new Date(job.finishedOn),
  };
}

/** As much of the envelope as there is: among the parked are those that are none. */
const envelope = z.object({ id: z.guid().catch(""), tenantid: z.string().catch("") });

function glimpse({ data }: QueueJob): { id: string; tenantid: string } {
  return envelope.catch({ id: "", tenantid: "" }).parse(data);
}
