import pg from "pg";
import type { BenchServers } from "../servers.ts";
import { HOT_SCOPE } from "./hot-scope.ts";

const { tenantId, projectId, poolId, slots, tenantLimit, projectLimit, holderKind, ttlSeconds } = HOT_SCOPE;

/** The URL of a database of ExecutionCapacityService with the hot scope in it, and so many leases that have ended. */
export async function hotDatabase(servers: BenchServers, name: string, endedLeases = 0): Promise<string> {
  const url = await servers.database("execution-capacity", name);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // A row is born in the state that it would have come to.
    await client.query("SET session_replication_role = replica");
    await client.query(
      `INSERT INTO worker_pool (tenant_id, id, state, kind, scaling, current_size, desired_size, next_token)
       VALUES ($1, $2, 'ACTIVE', 'RUN_WORKERS', 'STATIC', $3, $3, $4)`,
      [tenantId, poolId, slots, endedLeases + 1],
    );
    await client.query(
      `INSERT INTO quota (id, state, tenant_id, project_id, concurrent_runs, concurrent_sandboxes)
       VALUES (gen_random_uuid(), 'ACTIVE', $1, '', $3, $3), (gen_random_uuid(), 'ACTIVE', $1, $2, $4, $4)`,
      [tenantId, projectId, tenantLimit, projectLimit],
    );
    await client.query(ENDED_LEASES, [tenantId, projectId, holderKind, poolId, ttlSeconds, endedLeases]);
    // An empty table that was analyzed is planned for as one that stays empty.
    if (endedLeases > 0) await client.query("VACUUM ANALYZE");
  } finally {
    await client.end();
  }
  return url;
}

/** One that ended each second, up to now. */
const ENDED_LEASES = `
  INSERT INTO capacity_lease
    (id, version, state, tenant_id, project_id, holder_kind, holder_id, resource, pool_tenant_id, pool_id, units,
     ttl_seconds, fencing_token, requested_at, granted_at, expires_at, ended_at, release_reason, execution_seconds)
  SELECT gen_random_uuid(), 1, 'RELEASED', $1, $2, $3, gen_random_uuid()::text, 'RUNS', $1, $4, 1,
    $5::int, token, ended_at - interval '1 second', ended_at - interval '1 second',
    ended_at + make_interval(secs => $5::int - 1), ended_at, 'HOLDER', 1
  FROM (SELECT token, now() - make_interval(secs => $6::int - token) AS ended_at
        FROM generate_series(1, $6::int) AS token) AS ended`;
