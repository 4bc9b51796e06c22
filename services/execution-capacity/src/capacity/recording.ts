import type { Cause } from "@runtime-cloud/eventing/cause";
import { toCloudEvent } from "@runtime-cloud/eventing/to-cloud-event";
import type { IntegrationEvent } from "@runtime-cloud/state-machines/integration-event";
import type { Capacity } from "./capacity.ts";

/** A transition that a machine has decided. */
interface Transition {
  aggregate: string;
  row: { id: string; tenantId: string; projectId?: string | null };
  /** The row's version after it. */
  version: number;
  from: string;
  event: string;
  to: string;
  emitted: readonly IntegrationEvent[];
}

/** Notes a transition's history and what it announces, for the next write. */
export function recordTransition(capacity: Capacity, transition: Transition, cause: Cause): void {
  const { changes, newId, at } = capacity;
  const { aggregate, row, version, from, event, to, emitted } = transition;
  const { id, tenantId } = row;
  changes.history.push({ aggregate, id, tenantId, version, from, event, to, cause });
  if (emitted.length > 0) capacity.announces = true;
  for (const message of emitted) {
    const envelope = toCloudEvent(message, { id: newId(), at, subject: row, aggregateVersion: version, cause });
    changes.events.push({
      id: envelope.id,
      topic: envelope.type,
      tenantId,
      subject: id,
      envelope: JSON.stringify(envelope),
    });
  }
}
