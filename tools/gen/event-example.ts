import type { DescField, JsonObject, JsonValue } from "@bufbuild/protobuf";

import { type ContractEvent, RUNTIME_CLOUD } from "./contract.ts";
import { typeName } from "./field-types.ts";

const EVENT_ID = "0198f3a2-6c1e-7c41-9d5b-3f0a6d2b7e10";
const SUBJECT_ID = "0198f3a2-5b07-7a93-8e21-c4d09b6f1a55";
const CORRELATION_ID = "0198f3a2-4f9d-7e06-b3c8-71a2e5d8f043";
const AT = "2026-01-31T09:30:00.000Z";
const TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/** An envelope as a subscriber finds it in its inbox, with every field of the event. */
export function exampleEnvelope(event: ContractEvent): JsonObject {
  return {
    specversion: "1.0",
    id: EVENT_ID,
    source: event.plane === RUNTIME_CLOUD ? `/runtime-cloud/${event.producer}` : `/${event.producer}`,
    type: event.topic,
    subject: SUBJECT_ID,
    time: AT,
    datacontenttype: "application/json",
    dataschema: event.message.typeName,
    data: exampleData(event),
    tenantid: "tenant-1",
    correlationid: CORRELATION_ID,
    traceparent: TRACEPARENT,
    aggregateversion: 1,
  };
}

function exampleData({ message }: ContractEvent): JsonObject {
  return Object.fromEntries(message.fields.map((field) => [field.jsonName, exampleValue(field)]));
}

function exampleValue(field: DescField): JsonValue {
  const type = typeName(field);
  return type.startsWith("list:") ? [exampleItem(field, type.slice("list:".length))] : exampleItem(field, type);
}

function exampleItem(field: DescField, type: string): JsonValue {
  if (field.enum) return field.enum.values[1]?.name ?? "";
  switch (type) {
    case "guid":
      return SUBJECT_ID;
    case "datetime":
      return AT;
    case "long":
      return "60";
    case "int":
      return 1;
    case "bool":
      return false;
    case "json":
      return {};
    case "hash":
      return `sha256:${"0123456789abcdef".repeat(4)}`;
    case "decimal":
      return "12.50";
    default:
      return exampleText(field);
  }
}

/** `tenantId` is `tenant-1`; other texts say what they are. */
function exampleText({ jsonName }: DescField): string {
  return jsonName.endsWith("Id") ? `${jsonName.slice(0, -"Id".length)}-1` : `a ${jsonName}`;
}
