import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { type CloudEvent, decode, parseCloudEvent } from "./cloud-event.ts";
import { type EventModule, eventOnTopic } from "./event-catalogue.ts";

/** An event of the catalogue: `switch (event.name)` tells which, and types its `message`. */
export type KnownEvent = EventsIn<EventModule>;

/** An event of a topic that this version of the contract doesn't have: usually left alone. */
export interface UnknownEvent {
  name: undefined;
  envelope: CloudEvent;
}

/**
 * Reads what an inbox delivers:
 *
 * ```ts
 * const event = readEvent(job.data);
 * if (event.name === "ProvisioningApplied") console.log(event.envelope.tenantid, event.message.runId);
 * ```
 *
 * Throws MalformedEvent for what is no envelope, or breaks its event's rules. An unknown topic is no error.
 */
export function readEvent(data: unknown): KnownEvent | UnknownEvent {
  const envelope = parseCloudEvent(data);
  const declared = eventOnTopic(envelope.type);
  if (!declared) return { name: undefined, envelope };
  const event = { name: declared.name, envelope, message: decode(declared.schema, envelope) };
  return isKnown(event) ? event : { name: undefined, envelope };
}

/** The catalogue is built of the modules that the type is, so what it holds is known. */
function isKnown(event: { name: string; envelope: CloudEvent; message: Message }): event is KnownEvent {
  return eventOnTopic(event.envelope.type)?.schema.typeName === event.message.$typeName;
}

type EventsIn<Module> = Module extends unknown
  ? { [Export in keyof Module]: EventOf<Export, Module[Export]> }[keyof Module]
  : never;

type EventOf<Export, Schema> = Export extends `${infer Name}Schema`
  ? Schema extends DescMessage
    ? { name: Name; envelope: CloudEvent; message: MessageShape<Schema> }
    : never
  : never;
