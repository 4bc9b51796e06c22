import { EventEmitter, once } from "node:events";
import { parseCloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventOnTopic } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";

/** A consumer outside the service that hears how runs end. */
export const LISTENER = "AuditService";
const CONCURRENCY = 4;
const TIMEOUT_MS = 900_000;

/** Hears what the service announces of its runs, as a subscriber does. */
export interface AppliedNews {
  /** When (`performance.now()`) ProvisioningApplied came in for this run. Rejects when it failed. */
  applied(runId: string): Promise<number>;
}

interface Ending {
  readonly name: string;
  readonly at: number;
  readonly data: unknown;
}

export function listenForApplied(backend: QueueBackend): AppliedNews {
  const endings = new Map<string, Ending>();
  const heard = new EventEmitter();
  // Each run that is waited for listens for errors too.
  heard.setMaxListeners(0);
  backend.worker(
    inboxOf(LISTENER),
    async (job) => {
      const at = performance.now();
      const { type, subject, data } = parseCloudEvent(job.data);
      const name = eventOnTopic(type)?.name;
      if (subject === undefined || (name !== "ProvisioningApplied" && name !== "ProvisioningFailed")) return;
      endings.set(subject, { name, at, data });
      heard.emit(subject);
    },
    { concurrency: CONCURRENCY },
  );
  return {
    async applied(runId) {
      if (!endings.has(runId)) await once(heard, runId, { signal: AbortSignal.timeout(TIMEOUT_MS) });
      const ending = endings.get(runId);
      endings.delete(runId);
      if (ending?.name === "ProvisioningApplied") return ending.at;
      throw new Error(`run ${runId} was not applied: ${JSON.stringify(ending?.data)}`);
    },
  };
}
