import type { JsonObject } from "@bufbuild/protobuf";

const text: JsonObject = { type: "string", minLength: 1, maxLength: 512 };
const id: JsonObject = { type: "string", minLength: 1, maxLength: 128 };

/** The attributes of the CloudEvents 1.0 envelope and its extensions, without the `data`. */
export const envelopeProperties: Readonly<JsonObject> = {
  specversion: { const: "1.0" },
  id: { type: "string", format: "uuid", description: "Of the event: a second delivery has the same one." },
  source: { ...text, description: "Who announces it: `/runtime-cloud/<service>` for the Runtime Cloud's own." },
  type: { ...text, description: "The topic." },
  subject: { ...text, description: "The id of the aggregate that the event is about." },
  time: { type: "string", format: "date-time", description: "When the change was made." },
  datacontenttype: { const: "application/json" },
  dataschema: { ...text, description: "The full name of the protobuf message in `data`." },
  tenantid: { ...id, description: "Whose event it is." },
  projectid: { ...id, description: "The project, where the aggregate belongs to one." },
  correlationid: { ...id, description: "Shared by everything that one request set off, across services." },
  causationid: {
    ...id,
    description: "The id of the event that caused this one; absent when a request or a deadline did.",
  },
  traceparent: { ...id, description: "W3C trace context." },
  aggregateversion: {
    type: "integer",
    minimum: 0,
    description: "Of two events of one subject, the higher is newer; they may arrive in any order.",
  },
};

/** What every envelope has. */
export const REQUIRED_ATTRIBUTES = ["specversion", "id", "source", "type", "data", "tenantid"];
