import type { CloudEvent } from "@runtime-cloud/eventing/cloud-event";
import type { Ledger } from "./ledger.ts";

/** A way for events to get from whoever announces them to a handler. */
export interface Path {
  readonly name: string;
  /** Where its handler writes down what it gets. */
  readonly ledger: Ledger;
  /** Hands the events over; answers from when (`performance.now()`) their way counts. */
  send(events: readonly CloudEvent[]): Promise<number>;
  /** Throws unless just these events were handled since the ledger was cleared, and nothing of them is left. */
  check(events: readonly CloudEvent[]): Promise<void>;
  close(): Promise<void>;
}
