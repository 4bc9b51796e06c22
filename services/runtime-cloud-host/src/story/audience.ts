import { type CloudEvent, parseCloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventOnTopic } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";

/** Consumers outside this system whose inboxes the story reads: together they hear all that it looks for. */
export const AUDIENCE = ["AuditService", "DashboardService"];

/** What external subscribers have heard. */
export interface Audience {
  /** Events of one name about one subject or of one tenant, in the order of their arrival. */
  heard(name: string, about: (event: CloudEvent) => boolean): CloudEvent[];
}

/** Reads the inboxes of the audience, as a real subscriber does: duplicates are told by the event's id. */
export function startAudience(backend: QueueBackend): Audience {
  const heard = new Map<string, CloudEvent>();
  for (const subscriber of AUDIENCE) {
    backend.worker(
      inboxOf(subscriber),
      async (job) => {
        const event = parseCloudEvent(job.data);
        heard.set(event.id, event);
      },
      { concurrency: 4 },
    );
  }
  return {
    heard: (name, about) =>
      [...heard.values()].filter((event) => eventOnTopic(event.type)?.name === name && about(event)),
  };
}
