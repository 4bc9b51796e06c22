import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import type { NewJob } from "./queues/queue-backend.ts";

/** Eight tries: with the waits between them about a minute, which outlasts a restart and most reorderings. */
export const INBOX_ATTEMPTS = 8;
const FIRST_RETRY_MS = 500;
const RETRY_JITTER = 0.5;

/** The job that brings an event to a subscriber. Its id spares most duplicates; the inbox's receipt decides. */
export function inboxJob(event: CloudEvent): NewJob {
  return {
    name: event.type,
    data: event,
    opts: {
      jobId: `evt_${event.id}`,
      attempts: INBOX_ATTEMPTS,
      backoff: { type: "exponential", delay: FIRST_RETRY_MS, jitter: RETRY_JITTER },
    },
  };
}
