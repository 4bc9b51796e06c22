import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { Contestant } from "../rounds.ts";
import { HOT_SCOPE } from "./hot-scope.ts";
import { leaseEnvelopes } from "./lease-envelopes.ts";
import { createPlainTables } from "./plain-tables.ts";

export interface SqlCeiling {
  readonly about: string;
  contestant(seconds: number): Contestant;
  close(): Promise<void>;
}

const BATCH = 100;
const { tenantId, projectId, poolId, holderKind, ttlSeconds } = HOT_SCOPE;

/**
 * What PostgreSQL gives when everything is known beforehand: one client that grants a hundred leases in one statement
 * and gives them back in the next. Nobody asks, nobody is answered, and no request is looked at by itself.
 */
export async function openSqlCeiling(databaseUrl: string): Promise<SqlCeiling> {
  const tables = await createPlainTables(databaseUrl, 1);
  const envelopes = leaseEnvelopes();

  async function batch(): Promise<void> {
    const leases = Array.from({ length: BATCH }, () => ({ leaseId: uuidv7(), holderId: uuidv7() }));
    const leaseIds = leases.map(({ leaseId }) => leaseId);
    const told = (envelopeOf: typeof envelopes.granted) => {
      const eventIds = leases.map(() => uuidv7());
      return [eventIds, leases.map((lease, index) => envelopeOf({ ...lease, eventId: eventIds[index] ?? "" }))];
    };
    const holderIds = leases.map(({ holderId }) => holderId);
    const scope = [tenantId, projectId, poolId];
    await all({
      ...GRANT,
      values: [
        ...scope,
        holderKind,
        ttlSeconds,
        envelopes.grantedTopic,
        BATCH,
        leaseIds,
        holderIds,
        ...told(envelopes.granted),
      ],
    });
    await all({
      ...GIVE_BACK,
      values: [...scope, envelopes.releasedTopic, leaseIds, ...told(envelopes.released), leases.map(() => tenantId)],
    });
  }

  async function all(statement: { name: string; text: string; values: unknown[] }): Promise<void> {
    const { rowCount } = await tables.pool.query(statement);
    if (rowCount !== BATCH) throw new Error(`${statement.name} took effect ${rowCount ?? 0} times, not ${BATCH}`);
  }

  return {
    about: `one client, ${BATCH} leases a statement, the same counters, lease and outbox rows, no history and no event log`,
    contestant: (seconds) => ({
      name: "sql_ceiling",
      async round() {
        const start = performance.now();
        let batches = 0;
        while (performance.now() - start < seconds * 1_000) {
          await batch();
          batches += 1;
        }
        const tookSeconds = (performance.now() - start) / 1_000;
        return {
          figures: { pairs_per_second: (batches * BATCH) / tookSeconds },
          check: () => tables.check(batches * BATCH),
        };
      },
    }),
    close: tables.close,
  };
}

// Casts of the parameters: the planner must know them before it sees a value.
const GRANT = {
  name: "grant",
  text: `
    WITH request AS (
      SELECT * FROM unnest($8::uuid[], $9::text[], $10::uuid[], $11::text[])
        WITH ORDINALITY AS request (lease_id, holder_id, event_id, envelope, place)
    ), slots AS (
      UPDATE slot_pool SET used = used + $7::int, next_token = next_token + $7::int
      WHERE tenant_id = $1::varchar AND id = $3::varchar AND used + $7::int <= size
      RETURNING next_token - $7::int AS first_token
    ), quota AS (
      UPDATE slot_quota SET used = used + $7::int
      WHERE tenant_id = $1::varchar AND project_id IN ('', $2::varchar) AND used + $7::int <= slots
      RETURNING project_id
    ), granted AS (
      INSERT INTO slot_lease (tenant_id, id, project_id, holder_kind, holder_id, pool_id, state, token, granted_at, expires_at)
      SELECT $1::varchar, lease_id, $2::varchar, $4::varchar, holder_id, $3::varchar, 'ACTIVE', first_token + place - 1,
        statement_timestamp(), statement_timestamp() + make_interval(secs => $5::int)
      FROM request, slots WHERE (SELECT count(*) FROM quota) = 2
      RETURNING id
    )
    INSERT INTO slot_outbox (id, topic, tenant_id, subject, envelope)
    SELECT event_id, $6::varchar, $1::varchar, id::text, envelope::jsonb
    FROM request JOIN granted ON granted.id = request.lease_id`,
};
const GIVE_BACK = {
  name: "give-back",
  text: `
    WITH request AS (
      SELECT * FROM unnest($5::uuid[], $6::uuid[], $7::text[], $8::text[])
        AS request (lease_id, event_id, envelope, tenant_id)
    ), ended AS (
      UPDATE slot_lease lease SET state = 'RELEASED', ended_at = statement_timestamp(),
        execution_seconds = floor(extract(epoch FROM statement_timestamp() - granted_at))
      FROM request
      WHERE lease.tenant_id = request.tenant_id AND lease.id = request.lease_id AND lease.state = 'ACTIVE'
      RETURNING lease.id
    ), slots AS (
      UPDATE slot_pool SET used = used - (SELECT count(*)::int FROM ended)
      WHERE tenant_id = $1::varchar AND id = $3::varchar
    ), quota AS (
      UPDATE slot_quota SET used = used - (SELECT count(*)::int FROM ended)
      WHERE tenant_id = $1::varchar AND project_id IN ('', $2::varchar)
    )
    INSERT INTO slot_outbox (id, topic, tenant_id, subject, envelope)
    SELECT event_id, $4::varchar, $1::varchar, id::text, envelope::jsonb
    FROM request JOIN ended ON ended.id = request.lease_id`,
};
