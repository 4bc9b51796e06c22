import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type * as capacity from "@runtime-cloud/contracts/runtimecloud/events/v1/capacity_pb";
import type * as inventory from "@runtime-cloud/contracts/runtimecloud/events/v1/inventory_pb";
import type * as provisioning from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";

/** An event that a machine may emit, derived from the proto: a new message there is a new member here. */
export type IntegrationEvent = EventsOf<typeof provisioning> | EventsOf<typeof capacity> | EventsOf<typeof inventory>;

export type IntegrationEventName = IntegrationEvent["type"];

type EventsOf<Module> = {
  [K in keyof Module as K extends `${infer Name}Schema` ? Name : never]: K extends `${infer Name}Schema`
    ? { type: Name } & InitShape<Module[K]>
    : never;
} extends infer Events
  ? Events[keyof Events]
  : never;

type InitShape<Schema> = Schema extends DescMessage ? Omit<MessageInitShape<Schema>, "$typeName"> : never;
