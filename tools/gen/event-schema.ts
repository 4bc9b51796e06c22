import type { DescField, JsonObject } from "@bufbuild/protobuf";

import type { Contract, ContractEvent } from "./contract.ts";
import { exampleEnvelope } from "./event-example.ts";
import { envelopeProperties, REQUIRED_ATTRIBUTES } from "./envelope-schema.ts";
import { isNeverEmpty, isRequired, textRules, typeName } from "./field-types.ts";
import { prose } from "./proto-image.ts";

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** The file name of an event's schema: the last part of its topic, which no two events share. */
export function schemaFile({ topic }: ContractEvent): string {
  return `${topic.slice(topic.lastIndexOf(".") + 1)}.json`;
}

/** Every event's JSON Schema by file name: of the whole envelope, on its own, for consumers without protobuf. */
export function eventSchemaFiles({ planes }: Contract): ReadonlyMap<string, string> {
  const events = planes.flatMap((plane) => plane.events);
  return new Map(events.map((event) => [schemaFile(event), `${JSON.stringify(eventSchema(event), null, 2)}\n`]));
}

/** The envelope with this event in it. Open, as a consumer ignores what it doesn't know. */
export function eventSchema(event: ContractEvent): JsonObject {
  return {
    $schema: DIALECT,
    $id: `urn:runtime-cloud:event:${event.topic}`,
    $comment: `Generated from ${event.message.file.name}.proto; \`npm run gen\` writes it anew.`,
    title: event.name,
    description: event.description,
    type: "object",
    properties: {
      ...envelopeProperties,
      type: { const: event.topic, description: "The topic." },
      data: dataSchema(event),
    },
    required: REQUIRED_ATTRIBUTES,
    examples: [exampleEnvelope(event)],
  };
}

/** The event itself, as proto JSON. */
export function dataSchema({ message, description }: ContractEvent): JsonObject {
  return {
    type: "object",
    description,
    properties: Object.fromEntries(message.fields.map((field) => [field.jsonName, fieldSchema(field)])),
    required: message.fields.filter(isRequired).map(({ jsonName }) => jsonName),
  };
}

function fieldSchema(field: DescField): JsonObject {
  const description = prose(field);
  const type = typeName(field);
  const schema = type.startsWith("list:")
    ? { type: "array", items: itemSchema(field, type.slice("list:".length)) }
    : itemSchema(field, type);
  return { ...schema, ...(description !== "" && { description }) };
}

function itemSchema(field: DescField, type: string): JsonObject {
  if (field.enum) return enumSchema(field);
  switch (type) {
    case "guid":
      return { type: "string", format: "uuid" };
    case "datetime":
      return { type: "string", format: "date-time" };
    case "long":
      return { type: "string", pattern: "^-?[0-9]+$", description: "A 64-bit integer, as text." };
    case "int":
      return { type: "integer", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
    case "bool":
      return { type: "boolean" };
    case "json":
      return { type: "object" };
    default:
      return textSchema(field);
  }
}

function textSchema(field: DescField): JsonObject {
  const { pattern } = textRules(field);
  if (pattern !== undefined) return { type: "string", pattern };
  return { type: "string", ...(field.fieldKind === "scalar" && isNeverEmpty(field) && { minLength: 1 }) };
}

/** Values may be added, so the known ones are examples and any other text is valid too. */
function enumSchema(field: DescField): JsonObject {
  const [unspecified, ...known] = (field.enum?.values ?? []).map(({ name }) => name);
  return {
    type: "string",
    ...(isNeverEmpty(field) && unspecified !== undefined && { not: { const: unspecified } }),
    examples: known,
  };
}
