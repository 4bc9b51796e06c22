import type { NewId } from "@runtime-cloud/service-kit/ids";
import { type CapacityLease, Prisma } from "../../generated/prisma/client.ts";
import { type Capacity, holderKey, type InPool, keyOf, leaseKey, type Scope } from "./capacity.ts";
import {
  type FlowRow,
  flowOf,
  leaseOf,
  type LeaseRow,
  type PlaceRow,
  placeOf,
  poolOf,
  type PoolRow,
  quotaOf,
  type QuotaRow,
  usageOf,
  type UsageRow,
} from "./capacity-rows.ts";
import { noChanges } from "./changes.ts";
import type { Query } from "./query.ts";
import { isOpen, isOverdue } from "./capacity-lease.ts";

/** What a change touches. */
export interface Claim {
  /** Projects, or whole tenants where `projectId` is empty, whose use may rise or fall. */
  scopes?: readonly { tenantId: string; projectId: string }[];
  pools?: readonly PoolKey[];
  /** Pools as a tenant names them: its own, else the one that is shared under that id. */
  named?: readonly { tenantId: string; poolId: string }[];
  /** Leases that may end. */
  leases?: readonly { tenantId: string; id: string }[];
  /** Leases that are renewed, for which no lock is taken. */
  renewed?: readonly { tenantId: string; id: string }[];
  holders?: readonly Holder[];
  /** Leaves alone what is over by time. */
  sparing?: boolean;
}

export interface PoolKey {
  tenantId: string;
  id: string;
}

export interface Holder {
  tenantId: string;
  /** For example `Attempt`. */
  holderKind: string;
  holderId: string;
}

/** In which transaction the locks are taken. */
export interface LockContext {
  query: Query;
  newId: NewId;
  at: Date;
}

/**
 * Takes the locks that a claim needs, in the order that `capacity_open` states, and reads what is there. Taken again in
 * the same transaction it reads anew.
 */
export async function openCapacity({ query, newId, at }: LockContext, claim: Claim): Promise<Capacity> {
  const [row] = await query<{ opened: Opened }>(statement(claim));
  if (!row) throw new Error("capacity_open answered nothing");
  const { opened } = row;
  const now = new Date(opened.now);
  const renewed = opened.renewed ?? [];
  const leases = [...(opened.leases ?? []), ...renewed.map(({ lease }) => lease)].map(leaseOf);
  const overdue = new Set(opened.overdue);
  const pools = new Map((opened.pools ?? []).map(poolOf).map((pool) => [keyOf(pool.tenantId, pool.id), pool]));
  const scopes = new Map((opened.scopes ?? []).map(scopeRow).map((scope) => [scopeKey(scope), scope]));

  return {
    query,
    newId,
    at,
    now,
    pools,
    scopes,
    opened: { pools: [...pools.keys()], scopes: [...scopes.keys()] },
    flows: new Map((opened.flows ?? []).map(flowOf).map((flow) => [flowKey(flow), flow])),
    leases: new Map(leases.map((lease) => [leaseKey(lease), lease])),
    live: new Map(leases.filter(isOpen).map((lease) => [holderKey(lease), leaseKey(lease)])),
    places: placesOf(opened.places ?? []),
    endedHolders: new Set(
      (opened.ended ?? []).map(({ tenant_id, holder_kind, holder_id }) => keyOf(tenant_id, holder_kind, holder_id)),
    ),
    drainDeadlines: new Map(
      renewed.flatMap(({ lease, drain_deadline }) =>
        drain_deadline === null ? [] : [[keyOf(lease.tenant_id, lease.id), new Date(drain_deadline)]],
      ),
    ),
    overdue: (opened.leases ?? [])
      .map(leaseOf)
      .filter((lease) => overdue.has(lease.id) && isOverdue(lease, now))
      .map(leaseKey),
    changes: noChanges(),
    told: new Map(),
    announces: false,
    restless: new Set(),
    granting: new Set(),
    stirred: false,
  };
}

export function scopeRow({ usage, quota }: ScopeRow): Scope {
  return { usage: usageOf(usage), quota: quota && quotaOf(quota) };
}

export function scopeKey({ usage }: Scope): string {
  return keyOf(usage.tenantId, usage.projectId);
}

export function flowKey({ poolTenantId, poolId, tenantId, projectId }: FlowIdentity): string {
  return keyOf(poolTenantId, poolId, tenantId, projectId);
}

type FlowIdentity = InPool & Pick<CapacityLease, "tenantId" | "projectId">;

function placesOf(rows: readonly PlaceRow[]): Capacity["places"] {
  const places = new Map<string, ReturnType<typeof placeOf>[]>();
  for (const row of rows) {
    const key = keyOf(row.tenant_id, row.lease_id);
    places.set(key, [...(places.get(key) ?? []), placeOf(row)]);
  }
  return places;
}

function statement({
  scopes = [],
  pools = [],
  named = [],
  leases = [],
  renewed = [],
  holders = [],
  sparing = false,
}: Claim): Prisma.Sql {
  return Prisma.sql`
    SELECT capacity_open(
      ${leases.map((l) => l.tenantId)}::text[], ${leases.map((l) => l.id)}::uuid[],
      ${renewed.map((l) => l.tenantId)}::text[], ${renewed.map((l) => l.id)}::uuid[],
      ${named.map((p) => p.tenantId)}::text[], ${named.map((p) => p.poolId)}::text[],
      ${pools.map((p) => p.tenantId)}::text[], ${pools.map((p) => p.id)}::text[],
      ${scopes.map((s) => s.tenantId)}::text[], ${scopes.map((s) => s.projectId)}::text[],
      ${holders.map((h) => h.tenantId)}::text[], ${holders.map((h) => h.holderKind)}::text[],
      ${holders.map((h) => h.holderId)}::text[], ${!sparing}
    ) AS opened`;
}

/** What `capacity_open` answers; null where there is none. */
interface Opened {
  now: string;
  pools: PoolRow[] | null;
  leases: LeaseRow[] | null;
  overdue: string[];
  renewed: { lease: LeaseRow; drain_deadline: string | null }[] | null;
  scopes: ScopeRow[] | null;
  flows: FlowRow[] | null;
  ended: { tenant_id: string; holder_kind: string; holder_id: string }[] | null;
  places: PlaceRow[] | null;
}

export interface ScopeRow {
  usage: UsageRow;
  quota: QuotaRow | null;
}
