import { eventCatalogue } from "@runtime-cloud/contracts/events/event-catalogue";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type pg from "pg";

/** Consumed by StudioBff, among others. */
export const TOPIC = "capacity.quotas.v1.quota-changed";

/** What a message is about; whatever isn't given is made up. */
export interface Row {
  id?: string;
  topic?: string;
  tenantId?: string;
  subject?: string;
  /** Of the envelope, on top of the least. */
  data?: Record<string, unknown>;
}

/** Writes events as `commit` does, in one statement, and answers their ids. */
export async function insertEvents(db: pg.Pool | pg.ClientBase, rows: readonly Row[]): Promise<string[]> {
  const messages = rows.map(
    ({ id = uuidv7(), topic = TOPIC, tenantId = "tenant", subject = "subject", data = {} }) => ({
      id,
      topic,
      tenant_id: tenantId,
      subject,
      envelope: {
        specversion: "1.0",
        id,
        source: "/runtime-cloud/ExecutionCapacityService",
        type: topic,
        subject,
        time: "2026-11-30T12:00:00.000Z",
        datacontenttype: "application/json",
        dataschema: eventCatalogue.find((event) => event.topic === topic)?.schema.typeName,
        data,
        tenantid: tenantId,
        correlationid: id,
        aggregateversion: 1,
      },
    }),
  );
  await db.query(
    `INSERT INTO outbox_message (id, topic, tenant_id, subject, envelope)
     SELECT id, topic, tenant_id, subject, envelope
     FROM jsonb_to_recordset($1::jsonb)
       AS message (id uuid, topic text, tenant_id text, subject text, envelope jsonb)`,
    [JSON.stringify(messages)],
  );
  return messages.map(({ id }) => id);
}
