import { Prisma, type CapacityLease, type WorkerPool } from "../../generated/prisma/client.ts";
import { acquire, enqueue } from "./acquire.ts";
import { type Capacity, keyOf, leaseKey } from "../capacity/capacity.ts";
import { endLease, isOpen, isOverdue, lookLater } from "../capacity/capacity-lease.ts";
import { type Claim, type LockContext, openCapacity, type PoolKey } from "../capacity/capacity-lock.ts";
import { leaseOf, type LeaseRow } from "../capacity/capacity-rows.ts";
import type { AcquireOperation, ExpireOperation, LeaseOperation, LeaseOutcome } from "./lease-operation.ts";
import { release } from "./release.ts";
import { renew } from "./renew.ts";
import { endOverdue, settle } from "./settle.ts";

/** An operation; an acquire by a selector comes with the pools that it finds. */
export interface BatchItem {
  operation: LeaseOperation | ExpireOperation;
  candidates?: readonly PoolKey[] | undefined;
}

export interface DecidedBatch {
  results: PromiseSettledResult<LeaseOutcome>[];
  capacity: Capacity;
}

/**
 * Decides operations together, in one transaction, each as if it came alone in the order of the batch; but for an acquire
 * that can't be granted at once, which has its turn after all others. One that is refused leaves the others as they are.
 */
export async function decideBatch(lock: LockContext, items: readonly BatchItem[]): Promise<DecidedBatch> {
  const capacity = await openCapacity(lock, claimOf(items));
  await findPastLeases(capacity, items);
  const [first] = items;
  if (first) endOverdue(capacity, first.operation.cause);

  const decisions = items.map((item) => attempt(() => decide(capacity, item)));
  const outcomes = decisions.map((decision, index) => {
    const item = items[index];
    const queues = item && decision.status === "fulfilled" && decision.value === undefined;
    return queues ? attempt(() => wait(capacity, item)) : decision;
  });
  const last = items.at(-1);
  if (last) await settle(capacity, last.operation.cause);
  return { results: outcomes.map((outcome) => asCommitted(capacity, outcome)), capacity };
}

function decide(capacity: Capacity, item: BatchItem): LeaseOutcome | undefined {
  const { now } = capacity;
  const { operation } = item;
  switch (operation.kind) {
    case "acquire": {
      const lease = acquire(capacity, operation, poolsOf(capacity, operation, item.candidates));
      return lease && { lease, now };
    }
    case "renew":
      return renew(capacity, operation);
    case "release":
      return { lease: release(capacity, operation), now };
    case "expire":
      return { lease: expire(capacity, operation), now };
  }
}

function wait(capacity: Capacity, { operation, candidates }: BatchItem): LeaseOutcome {
  if (operation.kind !== "acquire") throw new Error(`a ${operation.kind} doesn't wait`);
  return { lease: enqueue(capacity, operation, poolsOf(capacity, operation, candidates)), now: capacity.now };
}

/** Ends a lease whose time is over; one that was renewed is looked after later. */
function expire(capacity: Capacity, { tenantId, leaseId, cause }: ExpireOperation): CapacityLease {
  const { leases, now } = capacity;
  const lease = leases.get(keyOf(tenantId, leaseId));
  if (!lease) throw new Error(`lease ${leaseId} went away`);
  if (!isOpen(lease)) return lease;
  if (isOverdue(lease, now)) return endLease(capacity, lease, { type: "expire", at: now }, cause);
  return lookLater(capacity, lease);
}

/** The locked pools that an acquire may use, as they are now. */
function poolsOf(
  { pools }: Capacity,
  { tenantId, target }: AcquireOperation,
  candidates: readonly PoolKey[] = [],
): WorkerPool[] {
  if ("selector" in target) {
    return candidates.flatMap((key) => pools.get(keyOf(key.tenantId, key.id)) ?? []);
  }
  const own = pools.get(keyOf(tenantId, target.poolId));
  if (own) return [own];
  return [...pools.values()].filter(({ id, shared }) => shared && id === target.poolId);
}

function claimOf(items: readonly BatchItem[]): Claim {
  const scopes = new Map<string, { tenantId: string; projectId: string }>();
  const named = new Map<string, { tenantId: string; poolId: string }>();
  const claim = { pools: [...new Set(items.flatMap(({ candidates = [] }) => candidates))] };
  for (const { operation } of items) {
    if (operation.kind !== "acquire") continue;
    const { tenantId, projectId, target } = operation;
    scopes.set(keyOf(tenantId, projectId), { tenantId, projectId });
    if ("poolId" in target) named.set(keyOf(tenantId, target.poolId), { tenantId, poolId: target.poolId });
  }
  const operations = items.map(({ operation }) => operation);
  const ending = operations.filter((operation) => operation.kind === "release" || operation.kind === "expire");
  return {
    ...claim,
    // An expiry ends what it names, and says so.
    sparing: operations.every(({ kind }) => kind === "expire"),
    scopes: [...scopes.values()],
    named: [...named.values()],
    holders: operations.filter((operation) => operation.kind === "acquire"),
    leases: ending.map(({ tenantId, leaseId: id }) => ({ tenantId, id })),
    renewed: operations
      .filter((operation) => operation.kind === "renew")
      .map(({ tenantId, leaseId: id }) => ({ tenantId, id })),
  };
}

/** Leases that ended long ago answer as they ended. */
async function findPastLeases({ leases, query }: Capacity, items: readonly BatchItem[]): Promise<void> {
  const missing = items.flatMap(({ operation }) => {
    if (operation.kind === "acquire" || leases.has(keyOf(operation.tenantId, operation.leaseId))) return [];
    return [operation];
  });
  if (missing.length === 0) return;
  const rows = await query<{ lease: LeaseRow }>(Prisma.sql`
    SELECT row_to_json(lease) AS lease
    FROM unnest(${missing.map((m) => m.tenantId)}::text[], ${missing.map((m) => m.leaseId)}::uuid[]) AS c (tenant_id, id)
    JOIN past_lease lease ON lease.tenant_id = c.tenant_id AND lease.id = c.id`);
  for (const { lease } of rows) leases.set(keyOf(lease.tenant_id, lease.id), leaseOf(lease));
}

function attempt<T>(work: () => T): PromiseSettledResult<T> {
  try {
    return { status: "fulfilled", value: work() };
  } catch (reason) {
    return { status: "rejected", reason };
  }
}

/** An acquire's lease may have been granted by what came after it. */
function asCommitted(
  { leases }: Capacity,
  outcome: PromiseSettledResult<LeaseOutcome | undefined>,
): PromiseSettledResult<LeaseOutcome> {
  if (outcome.status === "rejected") return outcome;
  if (!outcome.value) return { status: "rejected", reason: new Error("an operation came to nothing") };
  const { lease, ...decided } = outcome.value;
  const latest = lease.state === "WAITING" ? leases.get(leaseKey(lease)) : undefined;
  return { status: "fulfilled", value: { ...decided, lease: latest?.state === "ACTIVE" ? latest : lease } };
}
