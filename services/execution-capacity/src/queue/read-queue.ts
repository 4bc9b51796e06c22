import { type CapacityLease, type FairShare, Prisma, type WorkerPool } from "../../generated/prisma/client.ts";
import { type Capacity, leaseKey, type Scope } from "../capacity/capacity.ts";
import { flowKey, type ScopeRow, scopeKey, scopeRow } from "../capacity/capacity-lock.ts";
import { type FlowRow, flowOf, leaseOf, type LeaseRow, type PlaceRow, placeOf } from "../capacity/capacity-rows.ts";

/** A tenant in a pool's queue, with its projects. */
export interface QueuedTenant {
  flow: FairShare;
  scope: Scope;
  /** Its quota was used up when it was read. */
  blocked: boolean;
  projects: QueuedProject[];
}

export interface QueuedProject {
  flow: FairShare;
  scope: Scope;
  blocked: boolean;
  /** Its first waiters, in their order. */
  waiters: CapacityLease[];
  /** How many of them were passed over one by one, since nothing makes room for them. */
  skipped: number;
}

/**
 * Reads the head of a pool's queue, a page of tenants and of projects each, into what is decided on. Those that are
 * blocked come last, so a page that ends with one holds all that aren't.
 */
export async function readQueue(capacity: Capacity, pool: WorkerPool, page: number): Promise<QueuedTenant[]> {
  const [row] = await capacity.query<{ queue: QueueRow }>(
    Prisma.sql`SELECT capacity_queue(${pool.tenantId}, ${pool.id}, ${resourceOf(pool)}, ${page}::int) AS queue`,
  );
  const { tenants, projects } = row?.queue ?? { tenants: null, projects: null };
  const queued = new Map<string, QueuedTenant>();
  for (const tenant of tenants ?? []) {
    queued.set(tenant.flow.tenant_id, { ...known(capacity, tenant), projects: [] });
  }
  for (const { waiters, ...project } of projects ?? []) {
    queued.get(project.flow.tenant_id)?.projects.push({
      ...known(capacity, project),
      skipped: 0,
      waiters: (waiters ?? []).map((waiter) => knownWaiter(capacity, pool, waiter)),
    });
  }
  return [...queued.values()];
}

/** The rows that the capacity holds already are the newer ones: others may have been charged since they were written. */
function known({ scopes, flows }: Capacity, row: QueuedRow) {
  const read = { flow: flowOf(row.flow), scope: scopeRow(row) };
  const scope = scopes.get(scopeKey(read.scope)) ?? read.scope;
  scopes.set(scopeKey(scope), scope);
  flows.set(flowKey(read.flow), read.flow);
  return { flow: read.flow, scope, blocked: row.blocked };
}

function knownWaiter(capacity: Capacity, pool: WorkerPool, { lease: row, places }: WaiterRow): CapacityLease {
  const lease = leaseOf(row);
  const here = { poolTenantId: pool.tenantId, poolId: pool.id, selecting: false };
  capacity.leases.set(leaseKey(lease), lease);
  capacity.places.set(leaseKey(lease), places ? places.map(placeOf) : [here]);
  return lease;
}

/** What the leases of a kind of pool are charged to; empty: it depends on the lease. */
function resourceOf({ kind }: WorkerPool): string {
  if (kind === "GENERAL") return "";
  return kind === "RUN_WORKERS" ? "RUNS" : "SANDBOXES";
}

interface QueueRow {
  tenants: QueuedRow[] | null;
  projects: (QueuedRow & { waiters: WaiterRow[] | null })[] | null;
}

interface QueuedRow extends ScopeRow {
  flow: FlowRow;
  blocked: boolean;
}

interface WaiterRow {
  lease: LeaseRow;
  places: PlaceRow[] | null;
}
