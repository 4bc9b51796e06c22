import { until } from "@runtime-cloud/local-servers/until";
import { capacityDifferences } from "@runtime-cloud/execution-capacity/capacity/capacity-differences";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import type pg from "pg";
import type { CapacityService } from "./capacity-service.ts";
import { fullSecondAfter } from "./instants.ts";
import { addLiveLeases, addSharedPool, emptyTables, type LiveLease, POOL_OWNER } from "./lease-rows.ts";
import { BYSTANDER, BYSTANDER_POOL, BYSTANDER_POOL_SIZE } from "./storm-bystander.ts";

/** The leases of one storm, all due at one instant. */
export interface StormLeases {
  readonly poolId: string;
  readonly leases: readonly LiveLease[];
  readonly due: Date;
}

export const STORM_POOL_SIZE = 100_000;
const TTL_SECONDS = 600;
const SECOND_MS = 1_000;
/** What the rows' making and their flush take, unless the machine is busy. */
const ROWS_PER_SECOND = 5_000;
const FLUSH_MS = 2_000;
const ALL_ENDED_WITHIN_MS = 300_000;

interface StormOptions {
  readonly count: number;
  readonly tenants: number;
  /** How long nothing happens before. */
  readonly quietMs: number;
  /** Settles when nothing is under way with a storm that began before all was ready, and is given up. */
  readonly over: (storm: StormLeases) => Promise<unknown>;
}

/** Makes a storm that begins, on a full second, no earlier than `quietMs` after the rows are there. */
export async function prepareStorm(pool: pg.Pool, options: StormOptions): Promise<StormLeases> {
  const { count, quietMs, over } = options;
  for (let makingMs = (count / ROWS_PER_SECOND) * SECOND_MS + FLUSH_MS; ; makingMs *= 2) {
    const storm = await makeStorm(pool, options, fullSecondAfter(makingMs + quietMs));
    if (storm.due.getTime() - systemClock.now().getTime() >= quietMs) return storm;
    await over(storm);
  }
}

async function makeStorm(pool: pg.Pool, { count, tenants }: StormOptions, due: Date): Promise<StormLeases> {
  const poolId = `storm-${due.getTime()}`;
  await emptyTables(pool);
  await addSharedPool(pool, BYSTANDER_POOL, BYSTANDER_POOL_SIZE);
  const leases = await addLiveLeases(pool, STORM_POOL_SIZE, {
    poolId,
    count,
    tenants,
    ttlSeconds: TTL_SECONDS,
    expiries: [due, due],
  });
  // Else it may fall into one contestant's storm, and not into another's.
  await pool.query("CHECKPOINT");
  return { poolId, leases, due };
}

/** When (`performance.now()`) the last of them was seen to have ended: its pool is free again. */
export async function allEnded(pool: pg.Pool, { poolId }: StormLeases): Promise<number> {
  await until("the last lease to end", ALL_ENDED_WITHIN_MS, async () => {
    const { rows } = await pool.query<{ used: number }>(
      "SELECT used FROM worker_pool WHERE tenant_id = $1 AND id = $2",
      [POOL_OWNER, poolId],
    );
    return rows[0]?.used === 0 || undefined;
  });
  return performance.now();
}

/** Throws unless each of them expired once, was announced once, and left every counter right. */
export async function checkExpired({ context, aside }: CapacityService, { leases }: StormLeases): Promise<void> {
  const ids = leases.map(({ id }) => id);
  const { rows } = await aside.query<Record<string, number>>(
    `SELECT
       (SELECT count(*)::int FROM capacity_lease
        WHERE id = ANY($1) AND state = 'EXPIRED' AND release_reason = 'TTL' AND ended_at >= expires_at) AS expired,
       (SELECT count(*)::int FROM transition WHERE event = 'expire' AND tenant_id <> $2) AS transitions,
       (SELECT count(*)::int FROM outbox_message WHERE tenant_id <> $2) AS announced,
       (SELECT count(DISTINCT subject)::int FROM outbox_message
        WHERE envelope->>'dataschema' LIKE '%.CapacityLeaseReleased' AND subject::uuid = ANY($1)) AS released`,
    [ids, BYSTANDER],
  );
  const wrong = Object.entries(rows[0] ?? {}).filter(([, count]) => count !== ids.length);
  if (wrong.length > 0) throw new Error(`of ${ids.length} leases: ${JSON.stringify(Object.fromEntries(wrong))}`);
  const differences = await capacityDifferences(context.client);
  if (differences.length > 0)
    throw new Error(`counters differ from leases: ${JSON.stringify(differences.slice(0, 3))}`);
}
