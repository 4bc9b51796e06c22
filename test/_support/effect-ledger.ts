import { QuotaChangedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/capacity_pb";
import { type EventHandler, on } from "@runtime-cloud/eventing/event-handler";
import type pg from "pg";
import type { Tx } from "../eventing/service-database.ts";

/** A subscriber's effects, written so that one too many shows. */
export interface EffectLedger {
  /** Notes each QuotaChanged, and keeps what the newest one of each quota said. */
  handler: EventHandler<Tx>;
  /** The ids of the events that had an effect, as often as they had it. */
  effects(): Promise<string[]>;
  /** The newest version of each quota that was heard of. */
  newest(): Promise<Map<string, number>>;
}

/** Makes its tables in the subscriber's database; no constraint keeps an effect from happening twice. */
export async function openLedger(database: pg.Pool): Promise<EffectLedger> {
  await database.query(`
    CREATE TABLE IF NOT EXISTS effect (event_id uuid NOT NULL);
    CREATE TABLE IF NOT EXISTS newest (subject text PRIMARY KEY, version int NOT NULL)`);
  return {
    handler: on<typeof QuotaChangedSchema, Tx>(QuotaChangedSchema, "Note", async ({ tx }, { quotaId }, event) => {
      await tx.$executeRaw`
        WITH noted AS (INSERT INTO effect (event_id) VALUES (${event.id}::uuid))
        INSERT INTO newest (subject, version) VALUES (${quotaId}, ${event.aggregateversion ?? 0})
        ON CONFLICT (subject) DO UPDATE SET version = EXCLUDED.version WHERE newest.version < EXCLUDED.version`;
    }),
    async effects() {
      const { rows } = await database.query<{ id: string }>("SELECT event_id AS id FROM effect");
      return rows.map(({ id }) => id);
    },
    async newest() {
      const { rows } = await database.query<{ subject: string; version: number }>(
        "SELECT subject, version FROM newest",
      );
      return new Map(rows.map(({ subject, version }) => [subject, version]));
    },
  };
}
