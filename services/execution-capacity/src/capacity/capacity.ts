import type { NewId } from "@runtime-cloud/service-kit/ids";
import type { CapacityLease, FairShare, Quota, ScopeUsage, WorkerPool } from "../../generated/prisma/client.ts";
import type { Place } from "./capacity-rows.ts";
import { type Changes, noChanges } from "./changes.ts";
import type { Query } from "./query.ts";

/**
 * What a change of capacity decides on: rows read under their locks and changed here, until `write` puts them back. It
 * lives no longer than its transaction.
 */
export interface Capacity {
  readonly query: Query;
  readonly newId: NewId;
  /** When the work began, by this process's clock: the time in events. */
  readonly at: Date;
  /** The database's instant, read once every lock was held. */
  readonly now: Date;
  /** The locked pools. */
  readonly pools: ReadonlyMap<string, WorkerPool>;
  readonly scopes: Map<string, Scope>;
  readonly flows: Map<string, FairShare>;
  readonly leases: Map<string, CapacityLease>;
  /** By holder and resource, the live ones. */
  readonly live: Map<string, string>;
  /** The pools in whose queues a waiting lease has a place. */
  readonly places: Map<string, readonly Place[]>;
  readonly endedHolders: ReadonlySet<string>;
  /** The end of the drain in a renewed lease's pool. */
  readonly drainDeadlines: ReadonlyMap<string, Date>;
  /** Keys of the pools and scopes that were read when it was opened, with the flows of each scope in each pool. */
  readonly opened: { readonly pools: readonly string[]; readonly scopes: readonly string[] };
  /** Keys of leases whose time was over when the locks were held. */
  readonly overdue: readonly string[];
  changes: Changes;
  /** Leases that were changed and are written already. */
  readonly told: Map<string, CapacityLease>;
  /** Whether something was announced so far. */
  announces: boolean;
  /** Pools whose queue somebody has left who waited in several: who stood behind may have its turn. */
  readonly restless: Set<string>;
  /** Pools in which leases were granted that count against a quota: in others it may block who held up those behind. */
  readonly granting: Set<string>;
  /** Whether somebody who waits may be served by now. */
  stirred: boolean;
}

/** A pool, by its owner and id. */
export type InPool = Pick<CapacityLease, "poolTenantId" | "poolId">;

/** A tenant, or one project of it: what it holds and what limits it. */
export interface Scope {
  usage: ScopeUsage;
  quota: Quota | null;
}

/** A key of several texts, none of which can hold a NUL. */
export function keyOf(...parts: readonly string[]): string {
  return parts.join("\u0000");
}

export function poolKey({ poolTenantId, poolId }: InPool): string {
  return keyOf(poolTenantId, poolId);
}

export function leaseKey({ tenantId, id }: Pick<CapacityLease, "tenantId" | "id">): string {
  return keyOf(tenantId, id);
}

export function holderKey({ tenantId, holderKind, holderId, resource }: HolderOfResource): string {
  return keyOf(tenantId, holderKind, holderId, resource);
}

export type HolderOfResource = Pick<CapacityLease, "tenantId" | "holderKind" | "holderId" | "resource">;

/** Throws for a pool that isn't locked: a bug, since the locks cover all that a change reaches. */
export function lockedPool({ pools }: Capacity, place: InPool): WorkerPool {
  const pool = pools.get(poolKey(place));
  if (!pool) throw new Error(`pool ${place.poolId} isn't locked`);
  return pool;
}

/** The flow of a tenant (`projectId` empty) or project in a pool's queue; a new one begins at the pool's virtual time. */
export function flowIn({ flows }: Capacity, place: InPool, tenantId: string, projectId: string): FairShare {
  const key = keyOf(place.poolTenantId, place.poolId, tenantId, projectId);
  const known = flows.get(key);
  if (known) return known;
  const { poolTenantId, poolId } = place;
  const times = { virtualTime: 0, innerTime: 0 };
  const flow = { poolTenantId, poolId, tenantId, projectId, waiting: 0, ...times, contended: false };
  flows.set(key, flow);
  return flow;
}

export function scopeOf({ scopes }: Capacity, tenantId: string, projectId: string): Scope {
  const scope = scopes.get(keyOf(tenantId, projectId));
  if (!scope) throw new Error("a scope isn't locked");
  return scope;
}

export function resetChanges(capacity: Capacity): void {
  capacity.changes = noChanges();
}
