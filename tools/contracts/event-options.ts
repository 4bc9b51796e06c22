import { createFileRegistry, type DescMessage, fromBinary, getOption, hasOption } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { field as rules } from "@runtime-cloud/contracts/buf/validate/validate_pb";
import { event as eventOption } from "@runtime-cloud/contracts/runtimecloud/options/v1/options_pb";
import { eventCatalogue } from "@runtime-cloud/contracts/events/event-catalogue";

/**
 * What the events of now take from who uses those of a published Buf image, and what Buf doesn't look at because it
 * is in options: topic, producer, a consumer, and a field that may no longer be absent. A line each.
 */
export function takenFromEvents(image: Uint8Array): string[] {
  const now = new Map(eventCatalogue.map(({ schema }) => [schema.typeName, schema]));
  const published = [...createFileRegistry(fromBinary(FileDescriptorSetSchema, image))];
  return published
    .filter((type) => type.kind === "message")
    .filter((message) => hasOption(message, eventOption))
    .flatMap((before) => taken(before, now.get(before.typeName)));
}

function taken(before: DescMessage, now: DescMessage | undefined): string[] {
  const { name } = before;
  if (now === undefined) return [`${name} is no event any more`];
  const was = getOption(before, eventOption);
  const is = getOption(now, eventOption);
  const lost = was.consumers.filter((consumer) => !is.consumers.includes(consumer));
  return [
    ...(was.topic === is.topic ? [] : [`${name} moved from the topic ${was.topic} to ${is.topic}`]),
    ...(was.producer === is.producer
      ? []
      : [`${name} is announced by ${is.producer} and no longer by ${was.producer}`]),
    ...(lost.length === 0 ? [] : [`${name} is no longer delivered to ${lost.join(", ")}`]),
    ...newlyRequired(before, now).map((field) => `${name}.${field} became required`),
  ];
}

function newlyRequired(before: DescMessage, now: DescMessage): string[] {
  const demanded = (message: DescMessage) =>
    message.fields.filter((field) => getOption(field, rules).required).map(({ name }) => name);
  const already = demanded(before);
  return demanded(now).filter((name) => !already.includes(name));
}
