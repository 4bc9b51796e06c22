import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { beforeAll, expect, test } from "@jest/globals";
import { envelop, parseCloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventCatalogue, eventNamed } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { z } from "zod";

import { asyncapiDocument } from "../../tools/gen/asyncapi.ts";
import { type Contract, contract, type ContractEvent } from "../../tools/gen/contract.ts";
import { exampleEnvelope } from "../../tools/gen/event-example.ts";
import { eventSchema, eventSchemaFiles } from "../../tools/gen/event-schema.ts";
import { eventsPage } from "../../tools/gen/events-page.ts";
import { isRequired, typeName } from "../../tools/gen/field-types.ts";
import { type Finished, tryNode } from "../../tools/run.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** The parser reads hundreds of modules: some seconds, and many where other tests run beside it. */
const PARSER_MS = 120_000;
const names = eventCatalogue.map(({ name }) => name);
const validators = new Map<string, ValidateFunction>();

let declared: Contract;
let events: Map<string, ContractEvent>;

beforeAll(async () => {
  declared = await contract();
  events = new Map(declared.planes.flatMap((plane) => plane.events).map((event) => [event.name, event]));
});

test("the proto files declare the events of the catalogue, no more and no fewer", () => {
  expect([...events.keys()].sort()).toEqual([...names].sort());
});

test("the page has every event with its topic, its consumers and its fields", () => {
  const page = eventsPage(declared);
  for (const { name, topic, consumers, schema } of eventCatalogue) {
    const section = page.split(`\n### ${name}\n`)[1]?.split("\n### ")[0];
    expect(section).toContain(`| Topic | \`${topic}\` |`);
    expect(section).toContain(`| Consumers | ${consumers.join(", ")} |`);
    for (const { jsonName } of schema.fields) expect(section).toContain(`\n| ${jsonName} | `);
  }
});

test("the page has every command and every subscription, and each link on it leads to a heading", () => {
  const page = eventsPage(declared);
  for (const { commands, subscriptions } of declared.planes) {
    for (const { name, service } of commands) expect(page).toContain(`\n| ${name} | ${service} | `);
    for (const { consumer, event, handler } of subscriptions)
      expect(page).toMatch(new RegExp(`\n\\| ${consumer} \\| ${event} \\| \\w+ \\| ${handler} \\| `));
  }
  const headings = new Set([...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading.toLowerCase()));
  for (const [, anchor] of page.matchAll(/\]\(#([^)]+)\)/g)) expect(headings).toContain(anchor);
});

test(
  "AsyncAPI's own parser finds nothing wrong with its document",
  async () => {
    expect(await validated(asyncapiDocument(declared, "1.2.3"))).toEqual({ ok: true, output: "" });
  },
  PARSER_MS,
);

test(
  "and names what it finds wrong with a broken one",
  async () => {
    const broken = asyncapiDocument(declared, "1.2.3").replace("action: send", "action: shout");
    const { ok, output } = await validated(broken);
    expect(ok).toBe(false);
    expect(output).toContain("operations.announceSpecificationDeclared.action");
  },
  PARSER_MS,
);

test("each inbox of the AsyncAPI document has its subscriber's events", () => {
  const { channels } = channelsSchema.parse(parse(asyncapiDocument(declared, "1.2.3")));
  for (const subscriber of new Set(eventCatalogue.flatMap(({ consumers }) => consumers))) {
    const read = eventCatalogue.filter(({ consumers }) => consumers.includes(subscriber)).map(({ name }) => name);
    expect(Object.keys(channels[inboxOf(subscriber)]?.messages ?? {}).sort()).toEqual(read.sort());
  }
});

test("each event has a schema file of its own", () => {
  expect(eventSchemaFiles(declared).size).toBe(names.length);
});

test.each(names)("the schema of %s accepts what the project sends, and its own example", (name) => {
  const validate = validator(name);
  expect(problems(validate, envelopeOf(name))).toEqual([]);
  expect(problems(validate, exampleEnvelope(eventOf(name)))).toEqual([]);
  expect(parseCloudEvent(exampleEnvelope(eventOf(name))).type).toBe(eventOf(name).topic);
});

test.each(names)("the schema of %s refuses an event without a required field", (name) => {
  const validate = validator(name);
  for (const field of eventOf(name).message.fields) {
    const { [field.jsonName]: _, ...data } = dataOf(name);
    expect({ field: field.jsonName, valid: validate({ ...envelopeOf(name), data }) }).toEqual({
      field: field.jsonName,
      valid: !isRequired(field),
    });
  }
});

test.each(names)("the schema of %s refuses ids, instants, hashes and numbers in a wrong form", (name) => {
  const validate = validator(name);
  const formed = eventOf(name).message.fields.filter((field) => !/^(string|json|enum|list)/.test(typeName(field)));
  for (const { jsonName } of formed) {
    const data = { ...dataOf(name), [jsonName]: "not in its form" };
    expect({ jsonName, valid: validate({ ...envelopeOf(name), data }) }).toEqual({ jsonName, valid: false });
  }
});

test.each(names)("the schema of %s accepts fields and enum values of a later version", (name) => {
  const later = eventOf(name).message.fields.filter((field) => field.fieldKind === "enum");
  const values = Object.fromEntries(later.map(({ jsonName }) => [jsonName, "LATER_VALUE"]));
  const envelope = { ...envelopeOf(name), laterattribute: "x", data: { ...dataOf(name), ...values, laterField: 1 } };
  expect(problems(validator(name), envelope)).toEqual([]);
});

test("a schema and the project's own reader agree on the envelope's attributes", () => {
  const envelope = { ...exampleEnvelope(eventOf("ProvisioningApplied")), projectid: "p-1", causationid: uuidv7() };
  const validate = validator("ProvisioningApplied");
  const wrong = [undefined, "", 1, "x".repeat(600), "1.1", -1];
  for (const attribute of Object.keys(envelope).filter((name) => name !== "type")) {
    for (const value of wrong) {
      const changed: unknown = JSON.parse(JSON.stringify({ ...envelope, [attribute]: value }));
      expect({ attribute, value, valid: validate(changed) }).toEqual({ attribute, value, valid: isReadable(changed) });
    }
  }
});

const channelsSchema = z.object({
  channels: z.record(z.string(), z.object({ messages: z.record(z.string(), z.json()) })),
});

async function validated(document: string): Promise<Finished> {
  const folder = mkdtempSync(join(tmpdir(), "runtime-cloud-test-"));
  try {
    writeFileSync(join(folder, "asyncapi.yaml"), document);
    return await tryNode(root, ["--import", "tsx", "tools/check-asyncapi.ts", join(folder, "asyncapi.yaml")]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Compiled once: an event's schema is asked many times. */
function validator(name: string): ValidateFunction {
  const validate = validators.get(name) ?? new Ajv2020({ formats: fullFormats }).compile(eventSchema(eventOf(name)));
  validators.set(name, validate);
  return validate;
}

function problems(validate: ValidateFunction, value: unknown): unknown[] {
  validate(value);
  return validate.errors ?? [];
}

function isReadable(envelope: unknown): boolean {
  try {
    parseCloudEvent(envelope);
    return true;
  } catch {
    return false;
  }
}

/** An event with every field, wrapped by the code that wraps those of the services. */
function envelopeOf(name: string): JsonObject {
  const schema = eventNamed(name)?.schema;
  if (!schema) throw new Error(`${name} isn't in the catalogue`);
  const fields = fromJson(schema, exampleEnvelope(eventOf(name))["data"] ?? {});
  const envelope = envelop(schema, fields, {
    id: uuidv7(),
    at: new Date(0),
    subject: { id: uuidv7(), tenantId: "tenant-1", projectId: "project-1" },
    aggregateVersion: 7,
    cause: { correlationId: uuidv7(), causationId: uuidv7() },
  });
  return { ...envelope };
}

function dataOf(name: string): JsonObject {
  return parseCloudEvent(envelopeOf(name)).data;
}

function eventOf(name: string): ContractEvent {
  const event = events.get(name);
  if (!event) throw new Error(`the proto files don't declare ${name}`);
  return event;
}
