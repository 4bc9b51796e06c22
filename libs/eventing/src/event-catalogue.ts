import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { file_runtimecloud_events_v1_capacity } from "@runtime-cloud/contracts/runtimecloud/events/v1/capacity_pb";
import { file_runtimecloud_events_v1_control_plane } from "@runtime-cloud/contracts/runtimecloud/events/v1/control_plane_pb";
import { file_runtimecloud_events_v1_inventory } from "@runtime-cloud/contracts/runtimecloud/events/v1/inventory_pb";
import { file_runtimecloud_events_v1_provisioning } from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { event as eventOption } from "@runtime-cloud/contracts/runtimecloud/options/v1/options_pb";

/** An integration event as its proto file declares it. */
export interface CataloguedEvent {
  /** For example `ProvisioningApplied`. */
  name: string;
  schema: DescMessage;
  /** `context.area.vN.event-name`: the CloudEvents type, and the job name in a subscriber's inbox. */
  topic: string;
  /** The service that announces it, for example `IaCProvisioningService`. */
  producer: string;
  aggregate: string;
  /** Every service that reads it; a deployment delivers to those that its SUBSCRIBERS names. */
  consumers: readonly string[];
}

/** Every integration event, ours and those we consume, in the order of the proto files. */
export const eventCatalogue: readonly CataloguedEvent[] = [
  file_runtimecloud_events_v1_provisioning,
  file_runtimecloud_events_v1_capacity,
  file_runtimecloud_events_v1_inventory,
  file_runtimecloud_events_v1_control_plane,
].flatMap(({ messages }) => messages.filter((message) => hasOption(message, eventOption)).map(catalogued));

const byName = new Map(eventCatalogue.map((event) => [event.name, event]));
const byTopic = new Map(eventCatalogue.map((event) => [event.topic, event]));

export function eventNamed(name: string): CataloguedEvent | undefined {
  return byName.get(name);
}

export function eventOnTopic(topic: string): CataloguedEvent | undefined {
  return byTopic.get(topic);
}

/** The catalogue's entry of a message; throws for one that isn't declared as an integration event. */
export function eventOf(schema: DescMessage): CataloguedEvent {
  const event = byName.get(schema.name);
  if (event?.schema.typeName !== schema.typeName)
    throw new Error(`${schema.typeName} has no event option in its proto file`);
  return event;
}

function catalogued(schema: DescMessage): CataloguedEvent {
  const { topic, producer, aggregate, consumers } = getOption(schema, eventOption);
  return { name: schema.name, schema, topic, producer, aggregate, consumers };
}
