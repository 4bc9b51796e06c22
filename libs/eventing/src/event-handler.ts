import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type CloudEvent, decode } from "@runtime-cloud/contracts/events/cloud-event";
import type { Unit } from "./unit-of-work.ts";

/** What a service does about one kind of event; made by {@link on}. */
export interface EventHandler<Tx> {
  /** Part of the receipt's key: with another name, events that were taken in look new. At most 100 characters. */
  name: string;
  schema: DescMessage;
  /** Decodes the event; the result does the work in a unit. Throws MalformedEvent. */
  prepare(event: CloudEvent): (unit: Unit<Tx>) => Promise<void>;
}

/**
 * A handler of one message: `on(EnvironmentCreatedSchema, "ProvisionBaseline", async (unit, message, event) => …)`.
 *
 * It runs in the transaction that records the receipt, so its effect on the database happens once, however often the
 * event comes. Events also come late and out of order: read the row, and let its machine decide.
 */
export function on<Desc extends DescMessage, Tx>(
  schema: Desc,
  name: string,
  handle: (unit: Unit<Tx>, message: MessageShape<Desc>, event: CloudEvent) => Promise<void>,
): EventHandler<Tx> {
  return {
    name,
    schema,
    prepare(event) {
      const message = decode(schema, event);
      return (unit) => handle(unit, message, event);
    },
  };
}
