import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import type pg from "pg";
import { committed, portions } from "./committed.ts";

const ROWS_PER_INSERT = 1_000;

/** Commits the events to the outbox in one transaction, as services do, and answers when its COMMIT was sent. */
export function announce(pool: pg.Pool, events: readonly CloudEvent[]): Promise<number> {
  return committed(pool, async (client) => {
    for (const some of portions(events, ROWS_PER_INSERT)) {
      await client.query(
        `INSERT INTO outbox_message (id, topic, tenant_id, subject, envelope)
         SELECT (event->>'id')::uuid, event->>'type', event->>'tenantid', event->>'subject', event
         FROM jsonb_array_elements($1::jsonb) event`,
        [JSON.stringify(some)],
      );
    }
  });
}
