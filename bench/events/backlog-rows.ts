import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { decidedEvents } from "./decided-events.ts";

/** So many at a time, so that their senders' memory doesn't grow with the backlog. */
const EVENTS_PER_SEND = 5_000;

/** Sends so many events, a transaction for some thousands of them, and answers their ids. */
export async function rowsHeldBack(
  rows: number,
  send: (events: readonly CloudEvent[]) => Promise<unknown>,
): Promise<string[]> {
  const eventIds: string[] = [];
  while (eventIds.length < rows) {
    const events = decidedEvents(Math.min(EVENTS_PER_SEND, rows - eventIds.length));
    await send(events);
    eventIds.push(...events.map(({ id }) => id));
  }
  return eventIds;
}

/** `100k` */
export function inThousands(rows: number): string {
  return `${rows / 1_000}k`;
}
