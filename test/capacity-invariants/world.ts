import { openDatabase } from "@runtime-cloud/service-kit/database";
import type pg from "pg";
import { PrismaClient } from "../../services/execution-capacity/generated/prisma/client.ts";
import { testDatabase } from "../_support/database.ts";
import { installCommitGuards } from "./commit-guards.ts";
import { type LiveRow } from "./memory.ts";
import { type ServiceProcess, startProcess } from "./service-process.ts";

/** Two processes of the service on one database, whose commits are guarded. */
export interface World {
  processes: readonly [ServiceProcess, ServiceProcess];
  /** For looking and for letting time go by: apart from the processes' connections. */
  database: pg.Pool;
  /** What the guards found so far. */
  broken: readonly string[];
  /** The leases that live, while nothing is under way. */
  live(): Promise<LiveRow[]>;
  /** Cuts the connections that are in use now, and some of the others. */
  cutConnections(): Promise<void>;
  /** Forgets all that ever happened. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

const FIVE_MINUTES_MS = 300_000;
/** What lasts less may end before a burst does. */
const LASTING_SECONDS = 25;

/** Their clocks are wrong by five minutes, one in either direction (I14), unless others are given. */
export async function openWorld(
  clockSkewsMs: readonly [number, number] = [FIVE_MINUTES_MS, -FIVE_MINUTES_MS],
): Promise<World> {
  const test = await testDatabase("execution-capacity");
  const own = openDatabase(
    { url: plannedOnce(test.url), applicationName: "observer", maxConnections: 2, onError: () => undefined },
    (adapter) => new PrismaClient({ adapter }),
  );
  await installCommitGuards(own.pool);
  const broken: string[] = [];
  const process = (clockSkewMs: number) =>
    startProcess({ database: test, clockSkewMs, onBroken: (text) => void broken.push(text) });
  const [first, second] = clockSkewsMs;
  const processes = [await process(first), await process(second)] as const;

  return {
    processes,
    database: own.pool,
    broken,
    async live() {
      const { rows } = await own.pool.query<LiveLease>({ name: "live", text: LIVE, values: [LASTING_SECONDS] });
      return rows.map(({ leaseId, tenantId, state, token, holderKind, holderId, resource, lasting }) => ({
        seen: { leaseId, tenantId, state, fencingToken: token === null ? null : BigInt(token), end: null },
        holder: { tenantId, holderKind, holderId },
        resource,
        lasting,
      }));
    },
    async cutConnections() {
      await own.pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name <> 'observer' AND pid <> pg_backend_pid()
           AND (state <> 'idle' OR random() < 0.3)`,
      );
    },
    async clear() {
      await own.pool.query(
        `TRUNCATE worker_pool, pool_label, quota, scope_usage, capacity_lease, past_lease, queue_place, waiter_selector,
           fair_share, ended_holder, outbox_message, unsequenced_event, inbox_receipt, transition, idempotency_key`,
      );
    },
    async close() {
      for (const service of processes) await service.close();
      await own.close();
      await test.drop();
    },
  };
}

/** Its statements are few, and take less time than it takes to plan or compile them. */
function plannedOnce(url: string): string {
  const changed = new URL(url);
  changed.searchParams.set("options", "-c jit=off -c plan_cache_mode=force_generic_plan");
  return changed.href;
}

interface LiveLease {
  leaseId: string;
  tenantId: string;
  state: string;
  token: string | null;
  holderKind: string;
  holderId: string;
  resource: string;
  lasting: boolean;
}

/** A waiter may be withdrawn at any moment, when its pool is drained. */
const LIVE = `
  SELECT lease.id AS "leaseId", lease.tenant_id AS "tenantId", lease.state, lease.fencing_token AS token,
    holder_kind AS "holderKind", holder_id AS "holderId", resource,
    lease.state = 'ACTIVE' AND least(expires_at, draining.drain_deadline)
      > clock_timestamp() + make_interval(secs => $1) AS lasting
  FROM capacity_lease lease
  LEFT JOIN worker_pool draining ON draining.tenant_id = lease.pool_tenant_id AND draining.id = lease.pool_id
    AND draining.state = 'DRAINING'
  WHERE lease.state IN ('WAITING', 'ACTIVE')
  ORDER BY lease.requested_at, lease.id`;
