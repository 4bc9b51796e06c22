import {
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { eventCatalogue } from "@runtime-cloud/contracts/events/event-catalogue";
import {
  command as commandOption,
  command_message as commandMessageOption,
  event as eventOption,
  subscriptions as subscriptionsOption,
} from "@runtime-cloud/contracts/runtimecloud/options/v1/options_pb";

import { commentedFiles, prose } from "./proto-image.ts";

/** What the proto files say about events, commands and subscriptions, for the documents made from them. */
export interface Contract {
  readonly planes: readonly Plane[];
  /** The enums of the events' fields, each once, in the order they are met. */
  readonly enums: readonly DescEnum[];
}

export interface Plane {
  readonly name: string;
  readonly events: readonly ContractEvent[];
  readonly commands: readonly ContractCommand[];
  readonly subscriptions: readonly ContractSubscription[];
}

export interface ContractEvent {
  readonly name: string;
  /** The producer's. */
  readonly plane: string;
  readonly message: DescMessage;
  readonly description: string;
  readonly topic: string;
  readonly producer: string;
  readonly context: string;
  readonly aggregate: string;
  readonly consumers: readonly string[];
  readonly scope: string;
  readonly version: string;
  readonly assumed: boolean;
}

export interface ContractCommand {
  readonly name: string;
  readonly service: string;
  readonly handledBy: string;
  readonly resultEvents: readonly string[];
  readonly summary: string;
  readonly assumed: boolean;
  /** The method as gRPC names it for our own, the message's full name for another plane's. */
  readonly protoName: string;
}

export interface ContractSubscription {
  readonly consumer: string;
  readonly event: string;
  readonly producer: string;
  readonly handler: string;
  readonly purpose: string;
}

/** The plane of the services whose proto files these are. */
export const RUNTIME_CLOUD = "Runtime Cloud";
const CONTROL_PLANE = "Control Plane";
/** Their pages are not part of the contract, so their shapes are assumed. */
const OTHER_PLANES = "Other planes";

/** Reads `proto/` once per process; it doesn't change under a generator. */
export function contract(): Promise<Contract> {
  return (read ??= commentedFiles().then(contractOf));
}

let read: Promise<Contract> | undefined;

function contractOf(files: readonly DescFile[]): Contract {
  const ours = new Set(files.flatMap(({ services }) => services.map(({ name }) => name)));
  const events = files.flatMap(({ messages }) => messages).filter((message) => hasOption(message, eventOption));
  const contractEvents = events.map((message) => eventFrom(message, planeOf)).sort(inCatalogueOrder);
  const commands = files.flatMap(commandsOf);
  const subscriptions = files.flatMap((file) => getOption(file, subscriptionsOption));

  const planes = [RUNTIME_CLOUD, CONTROL_PLANE, OTHER_PLANES].map((name) => ({
    name,
    events: contractEvents.filter(({ plane }) => plane === name),
    commands: commands.filter(({ service }) => planeOf(service) === name),
    subscriptions: subscriptions.filter(({ consumer }) => planeOf(consumer) === name),
  }));
  return { planes, enums: enumsOf(contractEvents) };

  function planeOf(service: string, assumed = false): string {
    if (ours.has(service)) return RUNTIME_CLOUD;
    return assumed ? OTHER_PLANES : CONTROL_PLANE;
  }
}

function eventFrom(message: DescMessage, planeOf: (producer: string, assumed: boolean) => string): ContractEvent {
  const option = getOption(message, eventOption);
  const plane = planeOf(option.producer, option.assumed);
  return { ...option, name: message.name, plane, message, description: prose(message) };
}

function inCatalogueOrder(one: ContractEvent, other: ContractEvent): number {
  const names = eventCatalogue.map(({ name }) => name);
  return names.indexOf(one.name) - names.indexOf(other.name);
}

/** Our own commands are methods; those of another plane, whose service isn't here, are messages. */
function commandsOf(file: DescFile): ContractCommand[] {
  const methods = file.services.flatMap(({ methods }) => methods).filter((method) => hasOption(method, commandOption));
  const messages = file.messages.filter((message) => hasOption(message, commandMessageOption));
  return [
    ...methods.map((method) => ({
      ...getOption(method, commandOption),
      name: method.name,
      service: method.parent.name,
      summary: prose(method),
      protoName: `${method.parent.typeName}/${method.name}`,
    })),
    ...messages.map((message) => ({
      ...getOption(message, commandMessageOption),
      name: message.name,
      protoName: message.typeName,
    })),
  ];
}

function enumsOf(events: readonly ContractEvent[]): DescEnum[] {
  const fields: DescField[] = events.flatMap(({ message }) => message.fields);
  return [...new Set(fields.flatMap((field) => field.enum ?? []))];
}
