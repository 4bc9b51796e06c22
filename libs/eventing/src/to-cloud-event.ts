import { type CloudEvent, envelop, type EventMeta } from "@runtime-cloud/contracts/events/cloud-event";
import { eventNamed } from "@runtime-cloud/contracts/events/event-catalogue";
import type { IntegrationEvent } from "@runtime-cloud/state-machines/integration-event";

/** Wraps what a machine emitted. Throws for an event that breaks its own rules: a bug of the producer. */
export function toCloudEvent({ type: name, ...fields }: IntegrationEvent, meta: EventMeta): CloudEvent {
  const event = eventNamed(name);
  if (!event) throw new Error(`${name} has no event option in its proto file`);
  return envelop(event.schema, fields, meta);
}
