import { EventEmitter, once } from "node:events";
import { parseCloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventOnTopic } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { z } from "zod";
import { LISTENER } from "./environment-servers.ts";

const CONCURRENCY = 4;
const TIMEOUT_MS = 60_000;
const detection = z.object({ environmentId: z.string() });

/** Hears what drifted, as a subscriber does. */
export interface DriftNews {
  /** When (`performance.now()`) the first RuntimeDriftDetected came in for this environment. */
  detected(environmentId: string): Promise<number>;
  /** How many different ones came in for it. */
  count(environmentId: string): number;
}

export function listenForDrift(backend: QueueBackend): DriftNews {
  const arrivals = new Map<string, Map<string, number>>();
  const heard = new EventEmitter();
  backend.worker(
    inboxOf(LISTENER),
    async (job) => {
      const at = performance.now();
      const { id, type, data } = parseCloudEvent(job.data);
      if (eventOnTopic(type)?.name !== "RuntimeDriftDetected") return;
      const { environmentId } = detection.parse(data);
      const known = arrivals.get(environmentId) ?? new Map<string, number>();
      if (!known.has(id)) arrivals.set(environmentId, known.set(id, at));
      heard.emit(environmentId);
    },
    { concurrency: CONCURRENCY },
  );
  return {
    async detected(environmentId) {
      if (!arrivals.has(environmentId)) {
        await once(heard, environmentId, { signal: AbortSignal.timeout(TIMEOUT_MS) });
      }
      return Math.min(...(arrivals.get(environmentId)?.values() ?? []));
    },
    count: (environmentId) => arrivals.get(environmentId)?.size ?? 0,
  };
}
