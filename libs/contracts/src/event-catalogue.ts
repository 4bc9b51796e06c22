import { type DescFile, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import * as assetPublication from "../generated/runtimecloud/events/v1/asset_publication_pb.ts";
import * as capacity from "../generated/runtimecloud/events/v1/capacity_pb.ts";
import * as factoryCommercial from "../generated/runtimecloud/events/v1/factory_commercial_pb.ts";
import * as inventory from "../generated/runtimecloud/events/v1/inventory_pb.ts";
import * as projects from "../generated/runtimecloud/events/v1/projects_pb.ts";
import * as promotion from "../generated/runtimecloud/events/v1/promotion_pb.ts";
import * as provisioning from "../generated/runtimecloud/events/v1/provisioning_pb.ts";
import * as runControl from "../generated/runtimecloud/events/v1/run_control_pb.ts";
import * as tooling from "../generated/runtimecloud/events/v1/tooling_pb.ts";
import * as usageAccounting from "../generated/runtimecloud/events/v1/usage_accounting_pb.ts";
import { event as eventOption } from "../generated/runtimecloud/options/v1/options_pb.ts";

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

/** What is generated from the files of `runtimecloud.events`; a new file is added here. */
const modules = [
  provisioning,
  capacity,
  inventory,
  assetPublication,
  factoryCommercial,
  projects,
  promotion,
  runControl,
  tooling,
  usageAccounting,
] as const;

/** One of the generated modules that declare events. */
export type EventModule = (typeof modules)[number];

/** Every integration event, ours and those we consume, in the order of the proto files. */
export const eventCatalogue: readonly CataloguedEvent[] = modules
  .flatMap((module) => Object.values<object>(module).filter(isFile))
  .flatMap(({ messages }) => messages.filter((message) => hasOption(message, eventOption)).map(catalogued));

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

function isFile(exported: object): exported is DescFile {
  return "kind" in exported && exported.kind === "file";
}
