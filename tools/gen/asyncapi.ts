import type { JsonObject } from "@bufbuild/protobuf";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { stringify } from "yaml";

import type { Contract, ContractEvent } from "./contract.ts";
import { envelopeProperties, REQUIRED_ATTRIBUTES } from "./envelope-schema.ts";
import { exampleEnvelope } from "./event-example.ts";
import { dataSchema } from "./event-schema.ts";

const LINE_WIDTH = 120;

const DESCRIPTION = [
  "Integration events of the Runtime Cloud and of the planes around it, all in one: each service is a tag.",
  "A producer's relay adds an event as a BullMQ job to the queue `<Subscriber>.inbox` of every subscriber of its topic " +
    "that the deployment names in SUBSCRIBERS. A channel named after a topic says what its producer announces; one named " +
    "after an inbox is a real queue and says what its subscriber receives.",
  "A job's name is the topic, its data the envelope, its id `evt_<event id>`. Events arrive at least once and in any order.",
].join("\n\n");

const QUEUES_DESCRIPTION =
  "Redis 7 or Valkey with `maxmemory-policy noeviction`. The queues are BullMQ's, under the deployment's QUEUE_PREFIX " +
  "(`{runtime-cloud}` by default): read one with a BullMQ worker that has the same prefix.";

/** `docs/asyncapi.yaml`: the events as an AsyncAPI 3 document, with a channel per topic and per subscriber's inbox. */
export function asyncapiDocument({ planes }: Contract, version: string): string {
  const events = planes.flatMap((plane) => plane.events);
  const subscribers = [...new Set(events.flatMap(({ consumers }) => consumers))].sort();
  const document = {
    asyncapi: "3.0.0",
    info: { title: "Runtime Cloud events", version, description: DESCRIPTION, tags: serviceTags(events) },
    defaultContentType: "application/cloudevents+json",
    servers: {
      queues: { host: "localhost:6379", protocol: "redis", description: QUEUES_DESCRIPTION },
    },
    channels: {
      ...keyed(events, ({ topic }) => topic, topicChannel),
      ...keyed(subscribers, inboxOf, (subscriber) => inboxChannel(subscriber, events)),
    },
    operations: {
      ...keyed(events, ({ name }) => `announce${name}`, announcing),
      ...keyed(
        subscribers,
        (subscriber) => `receiveAs${subscriber}`,
        (subscriber) => receiving(subscriber, events),
      ),
    },
    components: {
      messages: keyed(events, ({ name }) => name, message),
      schemas: {
        CloudEvent: { type: "object", properties: envelopeProperties, required: REQUIRED_ATTRIBUTES },
        ...keyed(events, ({ name }) => name, dataSchema),
      },
    },
  };
  const header = "# Generated from `proto/`; `npm run gen` writes this file anew.\n";
  return header + stringify(document, { lineWidth: LINE_WIDTH, aliasDuplicateObjects: false });
}

function serviceTags(events: readonly ContractEvent[]): JsonObject[] {
  const producers = new Map(events.map(({ producer, context }) => [producer, context]));
  const subscribers = events.flatMap(({ consumers }) => consumers);
  return [...new Set([...producers.keys(), ...subscribers])].sort().map((name) => {
    const context = producers.get(name);
    return { name, ...(context !== undefined && { description: context }) };
  });
}

function topicChannel({ name, topic, description }: ContractEvent): JsonObject {
  return {
    address: topic,
    description,
    servers: [ref("servers", "queues")],
    messages: { [name]: ref("components", "messages", name) },
  };
}

function inboxChannel(subscriber: string, events: readonly ContractEvent[]): JsonObject {
  const address = inboxOf(subscriber);
  return {
    address,
    description: `The events that ${subscriber} takes in.`,
    servers: [ref("servers", "queues")],
    messages: Object.fromEntries(
      readBy(subscriber, events).map(({ name }) => [name, ref("components", "messages", name)]),
    ),
    "x-bullmq": { queue: address, jobName: "the topic", jobId: "evt_<event id>", data: "the envelope" },
  };
}

function announcing({ name, topic, producer, consumers }: ContractEvent): JsonObject {
  return {
    action: "send",
    summary: `${producer} announces ${name} to ${consumers.join(", ")}.`,
    channel: ref("channels", topic),
    tags: [{ name: producer }],
    messages: [ref("channels", topic, "messages", name)],
  };
}

function receiving(subscriber: string, events: readonly ContractEvent[]): JsonObject {
  const inbox = inboxOf(subscriber);
  return {
    action: "receive",
    summary: `${subscriber} takes in its events.`,
    channel: ref("channels", inbox),
    tags: [{ name: subscriber }],
    messages: readBy(subscriber, events).map(({ name }) => ref("channels", inbox, "messages", name)),
  };
}

function message(event: ContractEvent): JsonObject {
  const { name, topic, producer, aggregate, description, assumed } = event;
  return {
    name,
    title: name,
    summary: description,
    ...(assumed && { description: "Assumed: its producer's page gives no fields." }),
    contentType: "application/cloudevents+json",
    tags: [{ name: producer }, { name: aggregate, description: "aggregate" }],
    payload: {
      allOf: [
        ref("components", "schemas", "CloudEvent"),
        { type: "object", properties: { type: { const: topic }, data: ref("components", "schemas", name) } },
      ],
    },
    examples: [{ name, payload: exampleEnvelope(event) }],
  };
}

function readBy(subscriber: string, events: readonly ContractEvent[]): ContractEvent[] {
  return events.filter(({ consumers }) => consumers.includes(subscriber));
}

function keyed<Item>(
  items: readonly Item[],
  key: (item: Item) => string,
  value: (item: Item) => JsonObject,
): Record<string, JsonObject> {
  return Object.fromEntries(items.map((item) => [key(item), value(item)]));
}

function ref(...path: readonly string[]): JsonObject {
  return { $ref: `#/${path.join("/")}` };
}
