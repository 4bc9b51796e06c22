import { StaleRow } from "@runtime-cloud/service-kit/errors";
import type { AnyStateMachine } from "xstate";
import { messagesOf } from "./commit.ts";
import type { Accepted } from "./decision.ts";
import type { SqlTransaction } from "./sql-transaction.ts";
import type { Unit } from "./unit-of-work.ts";

/** A row as `save` left it. */
export interface Saved {
  id: string;
  version: number;
}

/**
 * Writes many accepted transitions, each of another row, in the unit's transaction: what `commit` does for one, in two
 * statements for all of them. `save` is the caller's one statement, an INSERT, or an UPDATE of rows by their ids and
 * the versions that were read; it answers with the rows that it wrote.
 *
 * A row that it didn't write is StaleRow, so the unit reads and decides again.
 */
export async function commitAll<M extends AnyStateMachine>(
  unit: Unit<SqlTransaction>,
  all: readonly Accepted<M>[],
  save: () => Promise<readonly Saved[]>,
): Promise<void> {
  if (all.length === 0) return;
  const versions = new Map((await save()).map(({ id, version }) => [id, version]));
  const recorded = all.map((accepted) => {
    const version = versions.get(accepted.row.id);
    if (version !== undefined) return { accepted, version };
    throw new StaleRow(`${accepted.aggregate} ${accepted.row.id} was changed by someone else meanwhile`);
  });
  await recordAll(unit, recorded);
}

async function recordAll<M extends AnyStateMachine>(
  unit: Unit<SqlTransaction>,
  recorded: readonly Recorded<M>[],
): Promise<void> {
  const { tx, cause } = unit;
  const history = recorded.map(({ accepted: { aggregate, row, from, event, state }, version }) => ({
    ...{ aggregate, id: row.id, tenant: row.tenantId, version },
    ...{ from, event, to: String(state) },
  }));
  const messages = recorded.flatMap(({ accepted, version }) =>
    messagesOf(unit, accepted, version).map((message) => ({
      ...message,
      tenant: accepted.row.tenantId,
      subject: accepted.row.id,
    })),
  );
  if (messages.length > 0) unit.announces();
  await tx.$executeRaw`
    WITH history AS (
      INSERT INTO transition
        (aggregate, aggregate_id, tenant_id, version, from_state, event, to_state,
         actor, correlation_id, causation_id, traceparent)
      SELECT aggregate, id, tenant, version, "from", event, "to",
        ${cause.actor}::text, ${cause.correlationId}::text, ${cause.causationId ?? null}::text,
        ${cause.traceparent ?? null}::text
      FROM jsonb_to_recordset(${JSON.stringify(history)}::jsonb)
        AS entry (aggregate text, id text, tenant text, version int, "from" text, event text, "to" text)
    )
    INSERT INTO outbox_message (id, topic, tenant_id, subject, envelope)
    SELECT id, topic, tenant, subject, envelope
    FROM jsonb_to_recordset(${JSON.stringify(messages)}::jsonb)
      AS message (id uuid, topic text, tenant text, subject text, envelope jsonb)`;
}

interface Recorded<M extends AnyStateMachine> {
  accepted: Accepted<M>;
  version: number;
}
