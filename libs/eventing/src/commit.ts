import { classifyDatabaseError } from "@runtime-cloud/service-kit/database-errors";
import { StaleRow } from "@runtime-cloud/service-kit/errors";
import type { AnyStateMachine, ContextFrom, StateValueFrom } from "xstate";
import { toCloudEvent } from "./to-cloud-event.ts";
import type { Accepted } from "./decision.ts";
import type { SqlTransaction } from "./sql-transaction.ts";
import type { Unit } from "./unit-of-work.ts";

/** What `save` writes: the columns that the transition changed, and the state. */
export type Columns<M extends AnyStateMachine> = Partial<ContextFrom<M>> & { state: StateValueFrom<M> };

/**
 * Writes an accepted transition in the unit's transaction: the row by `save`, its history, and the events that it
 * announces. `save` is the caller's one statement, a create, or an update that names the version it read:
 *
 * ```ts
 * commit(unit, accepted, (columns) =>
 *   unit.tx.quota.update({ where: { id, version }, data: { ...columns, version: { increment: 1 } } }))
 * ```
 *
 * A version that moved is StaleRow, so the unit reads and decides again. A transition that no machine has is refused
 * by the database, and everything rolls back.
 */
export async function commit<M extends AnyStateMachine, Row extends { version: number }>(
  unit: Unit<SqlTransaction>,
  accepted: Accepted<M>,
  save: (columns: Columns<M>) => Promise<Row>,
): Promise<Row> {
  const row = await saved(accepted, save);
  await record(unit, accepted, row.version);
  return row;
}

async function saved<M extends AnyStateMachine, Row>(
  { aggregate, row, state, patch }: Accepted<M>,
  save: (columns: Columns<M>) => Promise<Row>,
): Promise<Row> {
  try {
    return await save({ ...patch, state });
  } catch (error) {
    if (classifyDatabaseError(error) !== "missing") throw error;
    throw new StaleRow(`${aggregate} ${row.id} was changed by someone else meanwhile`, { cause: error });
  }
}

/** History and outbox in one statement, so a transition costs two round trips: this and `save`. */
async function record<M extends AnyStateMachine>(
  unit: Unit<SqlTransaction>,
  accepted: Accepted<M>,
  version: number,
): Promise<void> {
  const { tx, cause } = unit;
  const { aggregate, row, from, event, state } = accepted;
  const messages = messagesOf(unit, accepted, version);
  if (messages.length > 0) unit.announces();
  await tx.$executeRaw`
    WITH history AS (
      INSERT INTO transition
        (aggregate, aggregate_id, tenant_id, version, from_state, event, to_state,
         actor, correlation_id, causation_id, traceparent)
      VALUES
        (${aggregate}, ${row.id}, ${row.tenantId}, ${version}, ${from}, ${event}, ${String(state)},
         ${cause.actor}, ${cause.correlationId}, ${cause.causationId ?? null}, ${cause.traceparent ?? null})
    )
    INSERT INTO outbox_message (id, topic, tenant_id, subject, envelope)
    SELECT id, topic, ${row.tenantId}, ${row.id}, envelope
    FROM jsonb_to_recordset(${JSON.stringify(messages)}::jsonb) AS message (id uuid, topic text, envelope jsonb)`;
}

/** What a transition announces, for the outbox. */
export function messagesOf<M extends AnyStateMachine>(
  { cause, at, newId }: Unit<SqlTransaction>,
  { row, emitted }: Accepted<M>,
  version: number,
) {
  return emitted.map((message) => {
    const envelope = toCloudEvent(message, { id: newId(), at, subject: row, aggregateVersion: version, cause });
    return { id: envelope.id, topic: envelope.type, envelope };
  });
}
