import pg from "pg";
import { HOT_SCOPE } from "./hot-scope.ts";

/** Slots, quotas, leases and an outbox as somebody would write them who needs just this. */
const TABLES = `
  CREATE TABLE slot_pool (
    tenant_id varchar(128), id varchar(63), size int NOT NULL, used int NOT NULL DEFAULT 0,
    next_token bigint NOT NULL DEFAULT 1, PRIMARY KEY (tenant_id, id)
  ) WITH (fillfactor = 50);
  CREATE TABLE slot_quota (
    tenant_id varchar(128), project_id varchar(128), slots int NOT NULL, used int NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, project_id)
  ) WITH (fillfactor = 50);
  CREATE TABLE slot_lease (
    tenant_id varchar(128), id uuid, project_id varchar(128) NOT NULL, holder_kind varchar(63) NOT NULL,
    holder_id varchar(128) NOT NULL, pool_id varchar(63) NOT NULL, state varchar(40) NOT NULL, token bigint NOT NULL,
    granted_at timestamptz(3) NOT NULL, expires_at timestamptz(3) NOT NULL, ended_at timestamptz(3),
    execution_seconds bigint, PRIMARY KEY (tenant_id, id)
  );
  CREATE UNIQUE INDEX slot_lease_one_per_holder ON slot_lease (tenant_id, holder_kind, holder_id)
    WHERE state = 'ACTIVE';
  CREATE INDEX slot_lease_due ON slot_lease (expires_at) WHERE state = 'ACTIVE';
  CREATE TABLE slot_outbox (
    id uuid PRIMARY KEY, position bigserial, topic varchar(200) NOT NULL, tenant_id varchar(128) NOT NULL,
    subject varchar(128) NOT NULL, envelope jsonb NOT NULL, created_at timestamptz(3) NOT NULL DEFAULT now(),
    published_at timestamptz(3)
  );
  CREATE INDEX slot_outbox_unpublished ON slot_outbox (position) WHERE published_at IS NULL;`;

export interface PlainTables {
  readonly pool: pg.Pool;
  /** As a path's. */
  check(pairs: number): Promise<void>;
  close(): Promise<void>;
}

/** The tables in an empty database, with the hot scope in them. */
export async function createPlainTables(databaseUrl: string, connections: number): Promise<PlainTables> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: connections });
  // A connection that breaks fails the query that has it.
  pool.on("error", () => undefined);
  const { tenantId, projectId, poolId, slots, tenantLimit, projectLimit } = HOT_SCOPE;
  await pool.query(TABLES);
  await pool.query("INSERT INTO slot_pool (tenant_id, id, size) VALUES ($1, $2, $3)", [tenantId, poolId, slots]);
  await pool.query("INSERT INTO slot_quota (tenant_id, project_id, slots) VALUES ($1, '', $3), ($1, $2, $4)", [
    tenantId,
    projectId,
    tenantLimit,
    projectLimit,
  ]);
  let pairsSoFar = 0;

  return {
    pool,
    async check(pairs) {
      pairsSoFar += pairs;
      const { rows } = await pool.query<Record<string, number>>(STATE);
      const wrong = Object.entries(rows[0] ?? { rows: -1 }).filter(([what, count]) => {
        return count !== (what.startsWith("used") || what === "live" ? 0 : pairsSoFar);
      });
      if (wrong.length > 0) throw new Error(`after ${pairsSoFar} pairs: ${JSON.stringify(Object.fromEntries(wrong))}`);
    },
    close: () => pool.end(),
  };
}

const STATE = `
  SELECT (SELECT sum(used)::int FROM slot_pool) AS used_slots,
         (SELECT sum(used)::int FROM slot_quota) AS used_quota,
         (SELECT count(*)::int FROM slot_lease WHERE state = 'ACTIVE') AS live,
         (SELECT count(*)::int FROM slot_lease WHERE state = 'RELEASED') AS released,
         (SELECT count(DISTINCT token)::int FROM slot_lease) AS tokens,
         (SELECT count(*)::int FROM slot_outbox WHERE topic LIKE '%granted') AS told_granted,
         (SELECT count(*)::int FROM slot_outbox WHERE topic LIKE '%released') AS told_released`;
