import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type pg from "pg";
import { committed, portions } from "../events/committed.ts";

/** Live leases of one slot each, as the service leaves them behind in its database. */
export interface LiveLeases {
  readonly poolId: string;
  readonly count: number;
  /** How many tenants they are spread over, each with one project. */
  readonly tenants: number;
  readonly ttlSeconds: number;
  /** The expiries lie evenly between the two instants. */
  readonly expiries: readonly [first: Date, last: Date];
  /** When each is to be looked after, evenly as well; with its expiry when absent. */
  readonly dues?: readonly [first: Date, last: Date];
}

/** What its holder knows of it. */
export interface LiveLease {
  readonly id: string;
  readonly tenantId: string;
  readonly fencingToken: bigint;
}

export const POOL_OWNER = "pool-owner";
export const PROJECT = "project-1";
const ROWS_PER_INSERT = 5_000;
/** Locked in the order in which sweeps do. */
const TABLES = [
  "worker_pool",
  "capacity_lease",
  "past_lease",
  "queue_place",
  "waiter_selector",
  "fair_share",
  "scope_usage",
  "ended_holder",
  "quota",
  "pool_label",
  "transition",
  "outbox_message",
  "unsequenced_event",
];

/** Nothing may be under way. */
export async function emptyTables(pool: pg.Pool): Promise<void> {
  await pool.query(`TRUNCATE ${TABLES.join(", ")}`);
}

/** A pool that every tenant may use, with so many slots in use. */
export async function addSharedPool(pool: pg.Pool, poolId: string, size: number, used = 0): Promise<void> {
  await pool.query(
    `INSERT INTO worker_pool
       (tenant_id, id, state, kind, scaling, current_size, desired_size, shared, used, next_token)
     VALUES ($1, $2, 'PROVISIONING', 'RUN_WORKERS', 'STATIC', $3, $3, true, $4, $5)`,
    [POOL_OWNER, poolId, size, used, used + 1],
  );
  await pool.query("UPDATE worker_pool SET state = 'ACTIVE', version = 1 WHERE tenant_id = $1 AND id = $2", [
    POOL_OWNER,
    poolId,
  ]);
}

/** The label of wake-ups for the leases of such a pool. */
export function labelOf(poolId: string): Record<string, string> {
  return { pool: poolId, owner: POOL_OWNER };
}

/** Adds the leases to a new pool of the given size: leases, history and counters. */
export async function addLiveLeases(pool: pg.Pool, size: number, leases: LiveLeases): Promise<LiveLease[]> {
  await addSharedPool(pool, leases.poolId, size, leases.count);
  const added = Array.from({ length: leases.count }, (_, place) => ({
    id: uuidv7(),
    tenantId: `tenant-${place % leases.tenants}`,
    fencingToken: BigInt(place + 1),
  }));
  await committed(pool, async (client) => {
    // Each would be asked row by row whether it may be so.
    await client.query("SET LOCAL session_replication_role = replica");
    for (const some of portions(added, ROWS_PER_INSERT)) await insertLeases(client, leases, some);
    await client.query(
      `INSERT INTO scope_usage (tenant_id, project_id, used_runs)
       SELECT tenant_id, scope, count(*) FROM capacity_lease, unnest(ARRAY['', project_id]) AS scope
       WHERE pool_id = $1 GROUP BY 1, 2
       ON CONFLICT (tenant_id, project_id) DO UPDATE SET used_runs = scope_usage.used_runs + excluded.used_runs`,
      [leases.poolId],
    );
  });
  await pool.query("VACUUM ANALYZE capacity_lease, transition, scope_usage, worker_pool");
  return added;
}

async function insertLeases(
  client: pg.PoolClient,
  { poolId, count, ttlSeconds, expiries, dues = expiries }: LiveLeases,
  leases: readonly LiveLease[],
): Promise<void> {
  await client.query(
    `WITH lease AS (
       INSERT INTO capacity_lease
         (id, state, tenant_id, project_id, holder_kind, holder_id, resource, pool_tenant_id, pool_id, units,
          ttl_seconds, fencing_token, requested_at, granted_at, expires_at, due_at)
       SELECT id, 'ACTIVE', tenant_id, $4, 'Attempt', id::text, 'RUNS', $5, $6, 1, $7, token, $8, $8,
         $9::timestamptz + (token - 1) / $13::float8 * ($10::timestamptz - $9::timestamptz),
         $11::timestamptz + (token - 1) / $13::float8 * ($12::timestamptz - $11::timestamptz)
       FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS given (id, tenant_id, token)
       RETURNING id, tenant_id
     )
     INSERT INTO transition
       (aggregate, aggregate_id, tenant_id, version, from_state, event, to_state, actor, correlation_id)
     SELECT 'CapacityLease', id::text, tenant_id, 0, '[*]', 'grant', 'ACTIVE', 'bench', id::text FROM lease`,
    [
      leases.map(({ id }) => id),
      leases.map(({ tenantId }) => tenantId),
      leases.map(({ fencingToken }) => fencingToken),
      PROJECT,
      POOL_OWNER,
      poolId,
      ttlSeconds,
      new Date(expiries[0].getTime() - ttlSeconds * 1_000),
      ...expiries,
      ...dues,
      count,
    ],
  );
}
