import type { NewId } from "@runtime-cloud/service-kit/ids";
import { CapacityResource, type WorkerPool } from "../../generated/prisma/client.ts";
import { acquire } from "./acquire.ts";
import { type Capacity, holderKey, type InPool, keyOf, leaseKey, poolKey } from "../capacity/capacity.ts";
import { isOverdue } from "../capacity/capacity-lease.ts";
import { noChanges } from "../capacity/changes.ts";
import { databaseTime } from "./database-time.ts";
import type { BatchItem } from "./lease-batch.ts";
import type { AcquireOperation, LeaseOutcome, ReleaseOperation, RenewOperation } from "./lease-operation.ts";
import { release } from "./release.ts";
import { renew } from "./renew.ts";
import type { Assumptions } from "../capacity/write-statement.ts";

/** A batch that was decided on remembered rows, to be written in one statement that finds out whether they still hold. */
export interface Guess {
  capacity: Capacity;
  outcomes: LeaseOutcome[];
  assumed: Assumptions;
  /** Whether those that it builds on haven't come to nothing meanwhile. */
  holds: () => boolean;
}

export interface RememberedCapacity {
  /**
   * Decides plain operations that all succeed on what is remembered. Undefined when one isn't plain or something isn't
   * remembered: then the batch is decided under the locks. What it decided counts as done until `forget`.
   */
  guess(items: readonly BatchItem[], at: Date): Guess | undefined;
  /** Takes over what a batch has read under the locks and committed. */
  learn(capacity: Capacity): void;
  /** After a guess that came to nothing. */
  forget(): void;
}

/** Leases that are remembered; with more all is forgotten, and learned anew. */
const MAX_LEASES = 50_000;
const MAX_SCOPES = 5_000;

/**
 * What this process knows of pools, tenants and leases from its batches before. Nothing is decided by it alone: every
 * row carries a revision, and the statement that writes a guess does nothing if one has moved.
 */
export function rememberedCapacity(newId: NewId, elapsed?: () => number): RememberedCapacity {
  const time = databaseTime(elapsed);
  let memory = nothing();
  let ended: readonly string[] = [];

  function forget(): void {
    memory = nothing();
  }

  return {
    forget,
    guess(items, at) {
      // Those that ended with the guess before were still to be written then.
      for (const key of ended) memory.leases.delete(key);
      ended = [];
      const now = time.now();
      if (!now || !items.every((item) => isKnown(memory, item, now))) return undefined;
      const basis = memory;
      const { pools, scopes, flows, leases, live } = basis;
      const capacity: Capacity = { ...unread, newId, at, now, pools, scopes, flows, leases, live, ...fresh() };
      const assumed = {
        holders: holdersOf(items),
        tenants: releasing(items),
        grown: limited(memory, items),
        lasting: poolsOfRenewed(memory, items),
      };
      try {
        const outcomes = items.map((item) => decide(capacity, item));
        if (outcomes.every((outcome) => outcome !== undefined)) {
          ended = outcomes.flatMap(({ lease }) => (lease.endedAt ? [leaseKey(lease)] : []));
          return { capacity, outcomes, assumed, holds: () => memory === basis };
        }
      } catch {
        // Refused: for that the locks are taken.
      }
      forget();
      return undefined;
    },
    learn(capacity) {
      time.read(capacity.now);
      const { opened } = capacity;
      if (memory.leases.size > MAX_LEASES || memory.scopes.size > MAX_SCOPES) forget();
      for (const key of opened.pools) copy(key, capacity.pools, memory.pools);
      for (const key of opened.scopes) copy(key, capacity.scopes, memory.scopes);
      for (const pool of opened.pools) {
        for (const scope of opened.scopes) {
          memory.pairs.add(keyOf(pool, scope));
          copy(keyOf(pool, scope), capacity.flows, memory.flows);
        }
      }
      for (const lease of capacity.told.values()) keepLease(memory, lease);
    },
  };
}

interface Memory extends Pick<Capacity, "scopes" | "flows" | "leases" | "live"> {
  pools: Map<string, WorkerPool>;
  /** Pools with the scopes whose flows in them are known, also where there is none. */
  pairs: Set<string>;
}

function nothing(): Memory {
  return {
    pools: new Map(),
    scopes: new Map(),
    flows: new Map(),
    leases: new Map(),
    live: new Map(),
    pairs: new Set(),
  };
}

/** What a guess reads nothing of. */
const unread = {
  query: () => Promise.reject(new Error("a guess reads nothing")),
  endedHolders: new Set<string>(),
  drainDeadlines: new Map<string, Date>(),
  overdue: [],
  opened: { pools: [], scopes: [] },
};

function fresh() {
  const nothingYet = { announces: false, stirred: false };
  return {
    places: new Map(),
    changes: noChanges(),
    told: new Map(),
    restless: new Set<string>(),
    granting: new Set<string>(),
    ...nothingYet,
  };
}

function copy<Value>(key: string, from: ReadonlyMap<string, Value>, to: Map<string, Value>): void {
  const value = from.get(key);
  if (value) to.set(key, value);
  else to.delete(key);
}

function keepLease({ leases, live }: Memory, lease: ReturnType<Capacity["leases"]["get"]>): void {
  if (!lease) return;
  const key = leaseKey(lease);
  if (lease.state === "ACTIVE") {
    leases.set(key, lease);
    live.set(holderKey(lease), key);
  } else {
    leases.delete(key);
    if (live.get(holderKey(lease)) === key) live.delete(holderKey(lease));
  }
}

function isKnown(memory: Memory, { operation }: BatchItem, now: Date): boolean {
  switch (operation.kind) {
    case "acquire":
      return acquirable(memory, operation);
    case "renew":
    case "release":
      return changeable(memory, operation, now);
    case "expire":
      return false;
  }
}

/** A holder that is known to have a lease is answered under the locks: nothing would be written that could find out. */
function acquirable({ pools, pairs, scopes, live }: Memory, operation: AcquireOperation): boolean {
  const { tenantId, projectId, holderKind, holderId } = operation;
  const resources = Object.values(CapacityResource);
  if (resources.some((resource) => live.has(holderKey({ tenantId, holderKind, holderId, resource })))) return false;
  const pool = poolOf(pools, operation);
  if (pool?.state !== "ACTIVE" || pool.contended || pool.used >= pool.currentSize) return false;
  const key = keyOf(pool.tenantId, pool.id);
  return ["", projectId].every((name) => {
    const scope = keyOf(tenantId, name);
    return scopes.has(scope) && pairs.has(keyOf(key, scope));
  });
}

function changeable(memory: Memory, operation: RenewOperation | ReleaseOperation, now: Date): boolean {
  const { tenantId, leaseId, fencingToken } = operation;
  const lease = memory.leases.get(keyOf(tenantId, leaseId));
  if (!lease || lease.state !== "ACTIVE" || isOverdue(lease, now)) return false;
  if (fencingToken !== undefined && fencingToken !== lease.fencingToken) return false;
  const pool = memory.pools.get(poolKey(lease));
  const scopesKnown = ["", lease.projectId].every((name) => memory.scopes.has(keyOf(tenantId, name)));
  return pool !== undefined && pool.waiting === 0 && pool.state !== "DRAINING" && scopesKnown;
}

/** Its own, else the one that is shared. */
function poolOf(pools: ReadonlyMap<string, WorkerPool>, { tenantId, target }: AcquireOperation) {
  if ("selector" in target) return undefined;
  const own = pools.get(keyOf(tenantId, target.poolId));
  return own ?? [...pools.values()].find(({ id, shared }) => shared && id === target.poolId);
}

function decide(capacity: Capacity, { operation }: BatchItem): LeaseOutcome | undefined {
  const { now, pools } = capacity;
  if (operation.kind === "acquire") {
    const pool = poolOf(pools, operation);
    const lease = pool && acquire(capacity, operation, [pool]);
    return lease && capacity.changes.born.has(leaseKey(lease)) ? { lease, now } : undefined;
  }
  if (operation.kind === "renew") {
    const outcome = renew(capacity, operation);
    return outcome.renewal === "RENEWED" ? outcome : undefined;
  }
  if (operation.kind === "release") return { lease: release(capacity, operation), now };
  return undefined;
}

function holdersOf(items: readonly BatchItem[]) {
  return items.flatMap(({ operation }) => (operation.kind === "acquire" ? [operation] : []));
}

/** Tenants whose use falls: if one waited anywhere it might have its turn. */
function releasing(items: readonly BatchItem[]): string[] {
  return [...new Set(items.flatMap(({ operation }) => (operation.kind === "release" ? [operation.tenantId] : [])))];
}

/** Tenants whose use of a quota grows: it may come to block one of theirs who holds up others in a pool. */
function limited({ scopes }: Memory, items: readonly BatchItem[]): string[] {
  const growing = items.flatMap(({ operation }) => {
    if (operation.kind !== "acquire") return [];
    const { tenantId, projectId } = operation;
    return ["", projectId].some((name) => scopes.get(keyOf(tenantId, name))?.quota) ? [tenantId] : [];
  });
  return [...new Set(growing)];
}

/** A pool that drains caps its renewals. */
function poolsOfRenewed({ leases }: Memory, items: readonly BatchItem[]): Assumptions["lasting"] {
  const pools = new Map<string, InPool>();
  for (const { operation } of items) {
    const lease = operation.kind === "renew" && leases.get(keyOf(operation.tenantId, operation.leaseId));
    if (lease) pools.set(poolKey(lease), lease);
  }
  return [...pools.values()];
}
