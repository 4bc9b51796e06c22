import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { type CloudEvent, envelop } from "@runtime-cloud/contracts/events/cloud-event";
import { eventOf } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import type { Clock } from "@runtime-cloud/service-kit/clock";
import type { NewId } from "@runtime-cloud/service-kit/ids";

/** The other services of the factory, as far as this system hears of them. */
export interface ControlPlane {
  /** Puts an event on the inbox of each of our services that consumes it; answers the event's id. */
  announce<Desc extends DescMessage>(
    schema: Desc,
    subject: { id: string; tenantId: string; projectId?: string },
    fields: MessageInitShape<Desc>,
  ): Promise<string>;
  /** Everything announced so far. */
  announced(): readonly CloudEvent[];
}

const OURS = ["IaCProvisioningService", "ExecutionCapacityService", "RuntimeEnvironmentService"];

export function controlPlane(backend: QueueBackend, clock: Clock, newId: NewId): ControlPlane {
  const announced: CloudEvent[] = [];
  return {
    announced: () => announced,
    async announce(schema, subject, fields) {
      const event = envelop(schema, fields, {
        id: newId(),
        at: clock.now(),
        subject,
        aggregateVersion: 1,
        cause: { correlationId: newId() },
      });
      announced.push(event);
      const readers = eventOf(schema).consumers.filter((consumer) => OURS.includes(consumer));
      await Promise.all(readers.map((reader) => backend.add(inboxOf(reader), [inboxJob(event)])));
      return event.id;
    },
  };
}
