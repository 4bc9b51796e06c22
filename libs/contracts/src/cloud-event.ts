import {
  create,
  type DescMessage,
  fromJson,
  type JsonObject,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { createValidator, ValidationError, type ValidationResult } from "@bufbuild/protovalidate";
import { z } from "zod";
import { eventOf } from "./event-catalogue.ts";
import { jsonPath } from "./json-path.ts";
import { textProblem, unstorableTexts } from "./storable-text.ts";
import { hasUnknownEnumName } from "./unknown-enum-name.ts";

/** Longest envelope, as JSON in UTF-8. What is larger is fetched from its service by id. */
export const MAX_ENVELOPE_BYTES = 64 * 1024;

const storable = z.string().superRefine((value, context) => {
  const message = textProblem(value);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});
const text = storable.min(1).max(512);
const id = storable.min(1).max(128);

const cloudEventSchema = z.object({
  specversion: z.literal("1.0"),
  /** Also the inbox's key: a second delivery of the same id has no effect. */
  id: z.guid(),
  /** `/runtime-cloud/<service>` for ours. */
  source: text,
  /** The topic. */
  type: text,
  /** The aggregate's id. */
  subject: text.optional(),
  time: z.iso.datetime({ offset: true }).optional(),
  datacontenttype: z.literal("application/json").default("application/json"),
  /** The full name of the proto message in `data`. */
  dataschema: text.optional(),
  /** The event as proto JSON. */
  data: z.record(z.string(), z.json()),
  tenantid: id,
  projectid: id.optional(),
  correlationid: id.optional(),
  causationid: id.optional(),
  traceparent: id.optional(),
  /** The aggregate's version after the transition: of two events of one subject, the higher is newer. */
  aggregateversion: z.int().nonnegative().optional(),
});

/** An integration event on its way: CloudEvents 1.0, JSON structured mode. */
export type CloudEvent = z.output<typeof cloudEventSchema>;

/** What an envelope says about its event. */
export interface EventMeta {
  /** A UUID. */
  id: string;
  at: Date;
  /** The row that the event is about. */
  subject: { id: string; tenantId: string; projectId?: string | null };
  aggregateVersion: number;
  cause: EventCause;
}

/** What set the event off. */
export interface EventCause {
  /** Shared by everything that one request set off, across services. */
  correlationId: string;
  /** The id of the event that caused this one; absent for a request or a deadline. */
  causationId?: string;
  /** W3C trace context. */
  traceparent?: string;
}

/** An event that can't be read, ever: repeating it won't help. The message names fields, never their values. */
export class MalformedEvent extends Error {
  override readonly name = "MalformedEvent";
}

/** Wraps any event of the catalogue. Throws when it breaks its rules, or when the envelope is over 64 KiB. */
export function envelop<Desc extends DescMessage>(
  schema: Desc,
  fields: MessageInitShape<Desc>,
  { id: eventId, at, subject, aggregateVersion, cause }: EventMeta,
): CloudEvent {
  const { topic, producer } = eventOf(schema);
  const envelope: CloudEvent = {
    specversion: "1.0",
    id: eventId,
    source: `/runtime-cloud/${producer}`,
    type: topic,
    subject: subject.id,
    time: at.toISOString(),
    datacontenttype: "application/json",
    dataschema: schema.typeName,
    data: write(schema, valid(schema, create(schema, fields))),
    tenantid: subject.tenantId,
    correlationid: cause.correlationId,
    aggregateversion: aggregateVersion,
    ...(subject.projectId && { projectid: subject.projectId }),
    ...(cause.causationId !== undefined && { causationid: cause.causationId }),
    ...(cause.traceparent !== undefined && { traceparent: cause.traceparent }),
  };
  const bytes = Buffer.byteLength(JSON.stringify(envelope));
  if (bytes <= MAX_ENVELOPE_BYTES) return envelope;
  throw new Error(`${schema.name} of ${subject.id} has ${bytes} bytes; an event may have ${MAX_ENVELOPE_BYTES}`);
}

/** Reads an envelope out of a queue, which is no trusted input. Throws MalformedEvent. */
export function parseCloudEvent(data: unknown): CloudEvent {
  const parsed = parsedSafely(data);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "envelope"}: ${message}`);
  throw new MalformedEvent(`not a CloudEvents 1.0 envelope: ${problems.join("; ")}`);
}

function parsedSafely(data: unknown) {
  try {
    return cloudEventSchema.safeParse(data);
  } catch (cause) {
    if (cause instanceof RangeError)
      throw new MalformedEvent("not a CloudEvents 1.0 envelope: it is nested too deeply", { cause });
    throw cause;
  }
}

/**
 * The message in an envelope. Fields that this version doesn't know are ignored. An enum value whose name it doesn't know
 * reads as UNSPECIFIED, also where the field is required, since the producer did set it; an unknown number is kept. So
 * handle UNSPECIFIED as "a value that is newer than I am". Throws MalformedEvent when the message breaks its rules.
 */
export function decode<Desc extends DescMessage>(schema: Desc, { data }: CloudEvent): MessageShape<Desc> {
  return valid(schema, read(schema, data), data);
}

const validator = createValidator();

function valid<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  data: JsonObject = {},
): MessageShape<Desc> {
  const error = problemOf(validator.validate(schema, message), data);
  if (error) throw new MalformedEvent(`${schema.name} breaks its rules: ${error.message}`, { cause: error });
  const [unstorable] = unstorableTexts(schema, message);
  if (!unstorable) return message;
  throw new MalformedEvent(`${schema.name}: ${jsonPath(unstorable.path)} ${unstorable.problem}`);
}

/** What breaks the rules; a required enum field whose value has a name that isn't known here was set, so it isn't missing. */
function problemOf({ error, violations = [] }: ValidationResult, data: JsonObject): Error | undefined {
  const broken = violations.filter(({ ruleId, field: [field] }) => {
    const set = field?.kind === "field" && hasUnknownEnumName(field, data);
    return ruleId !== "required" || !set;
  });
  if (broken.length === violations.length) return error;
  return broken.length > 0 ? new ValidationError(broken) : undefined;
}

function read<Desc extends DescMessage>(schema: Desc, data: JsonObject): MessageShape<Desc> {
  try {
    return fromJson(schema, data, { ignoreUnknownFields: true });
  } catch (cause) {
    throw new MalformedEvent(`data is no ${schema.typeName}`, { cause });
  }
}

/** Zeroes and empty lists are written out, so that a consumer needs no proto to read the event. */
function write<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): JsonObject {
  const json = toJson(schema, message, { alwaysEmitImplicit: true });
  if (typeof json === "object" && json !== null && !Array.isArray(json)) return json;
  throw new Error(`${schema.typeName} is no JSON object`);
}
