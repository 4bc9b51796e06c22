import type { DescEnum } from "@bufbuild/protobuf";

import type { Contract, ContractCommand, ContractEvent, ContractSubscription, Plane } from "./contract.ts";
import { exampleEnvelope } from "./event-example.ts";
import { schemaFile } from "./event-schema.ts";
import { isRequired, typeName } from "./field-types.ts";
import { prose } from "./proto-image.ts";

/** `docs/events.md`: the contract's events, commands and subscriptions, in the shape of its own pages. */
export function eventsPage({ planes, enums }: Contract): string {
  return ["# Events", "", ...introduction(planes), ...planes.flatMap(planeSection), ...enumSection(enums), ""].join(
    "\n",
  );
}

function introduction(planes: readonly Plane[]): string[] {
  const [first] = planes.flatMap(({ events }) => events);
  return [
    "Generated from `proto/`; `npm run gen` writes this page anew. Topics follow `context.area.vN.event-name`.",
    "",
    "A subscriber reads the BullMQ queue `<Subscriber>.inbox`: a job's name is the topic, its data the envelope, which is",
    "CloudEvents 1.0 in JSON. Events arrive at least once and in any order: `id` tells a second delivery, and of two events",
    "of one `subject` the higher `aggregateversion` is newer. Fields and enum values may be added; ignore what you don't",
    "know. What is marked assumed has no fields on its owner's page: its shape is what we read. The same for tools is in",
    "[asyncapi.yaml](asyncapi.yaml).",
    "",
    ...(first ? ["```json", JSON.stringify(exampleEnvelope(first), null, 2), "```", ""] : []),
    "| Type | In JSON |",
    "| --- | --- |",
    "| guid | string, a UUID |",
    "| string | string; a required one isn't empty |",
    "| hash | string, `sha256:` and 64 hex digits |",
    "| decimal | string, a decimal number |",
    "| int | number |",
    "| long | string, a 64-bit integer |",
    "| bool | boolean |",
    "| datetime | string, RFC 3339 |",
    "| json | object |",
    "| list:X | array of X |",
    "| enum:X | string, one of [its values](#enums) or a later one |",
  ];
}

function planeSection({ name, events, commands, subscriptions }: Plane): string[] {
  return [
    "",
    `## ${name}`,
    "",
    "| Event | Producer | Topic | Scope | Consumers |",
    "| --- | --- | --- | --- | ---: |",
    ...events.map(
      (event) =>
        `| [${event.name}](#${event.name.toLowerCase()}) | ${event.producer} | \`${event.topic}\` | ${event.scope} | ${event.consumers.length} |`,
    ),
    ...events.flatMap(eventSection),
    ...commandsSection(commands),
    ...subscriptionsSection(subscriptions),
  ];
}

function eventSection(event: ContractEvent): string[] {
  const { name, description, producer, context, scope, version, topic, aggregate, consumers, message, assumed } = event;
  const source = `../proto/${message.file.name}.proto`;
  const schema = `../libs/contracts/schemas/${schemaFile(event)}`;
  return [
    "",
    `### ${name}`,
    "",
    description,
    "",
    "| | |",
    "| --- | --- |",
    `| Producer | ${producer} (${context}) |`,
    `| Scope / version | ${scope} / ${version}${assumed ? ", **assumed**" : ""} |`,
    `| Topic | \`${topic}\` |`,
    `| Aggregate | ${aggregate} |`,
    `| Consumers | ${consumers.join(", ")} |`,
    `| Message | [\`${message.typeName}\`](${source}) |`,
    `| JSON Schema | [${schemaFile(event)}](${schema}) |`,
    "",
    "| Field | Type | Required | Description |",
    "| --- | --- | --- | --- |",
    ...message.fields.map((field) => {
      const required = isRequired(field) ? "yes" : "no";
      return `| ${field.jsonName} | ${linked(typeName(field))} | ${required} | ${cell(prose(field))} |`;
    }),
  ];
}

function commandsSection(commands: readonly ContractCommand[]): string[] {
  if (commands.length === 0) return [];
  return [
    "",
    "### Commands",
    "",
    "| Command | Service | Handled by | Result events | Summary | In proto |",
    "| --- | --- | --- | --- | --- | --- |",
    ...commands.map(({ name, service, handledBy, resultEvents, summary, protoName, assumed }) => {
      const proto = `\`${protoName}\`${assumed ? " (assumed)" : ""}`;
      return `| ${name} | ${service} | ${handledBy} | ${resultEvents.join(", ")} | ${cell(summary)} | ${proto} |`;
    }),
  ];
}

function subscriptionsSection(subscriptions: readonly ContractSubscription[]): string[] {
  if (subscriptions.length === 0) return [];
  return [
    "",
    "### Consumed from other services",
    "",
    "| Consumer | Event | Producer | Handler | Purpose |",
    "| --- | --- | --- | --- | --- |",
    ...subscriptions.map(
      ({ consumer, event, producer, handler, purpose }) =>
        `| ${consumer} | ${event} | ${producer} | ${handler} | ${cell(purpose)} |`,
    ),
  ];
}

function enumSection(enums: readonly DescEnum[]): string[] {
  return ["", "## Enums", ...enums.flatMap(enumTable)];
}

/** Without the zero value, which no event carries where the field is required. */
function enumTable(desc: DescEnum): string[] {
  const [, ...values] = desc.values;
  const about = prose(desc);
  return [
    "",
    `### ${desc.name}`,
    "",
    ...(about === "" ? [] : [about, ""]),
    "| Value | Description |",
    "| --- | --- |",
    ...values.map((value) => `| \`${value.name}\` | ${cell(prose(value))} |`),
  ];
}

function linked(type: string): string {
  const [, name] = /^(?:list:)?enum:(.+)$/.exec(type) ?? [];
  return name === undefined ? type : `[${type}](#${name.toLowerCase()})`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
