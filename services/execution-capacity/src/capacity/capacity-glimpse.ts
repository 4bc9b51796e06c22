import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { NewId } from "@runtime-cloud/service-kit/ids";
import type { WorkerPool } from "../../generated/prisma/client.ts";
import { type Capacity, holderKey, keyOf, leaseKey } from "./capacity.ts";
import { isOverdue } from "./capacity-lease.ts";
import { flowKey } from "./capacity-lock.ts";
import { noChanges } from "./changes.ts";
import type { Tx } from "../context.ts";
import type { AcquireOperation } from "../desk/lease-operation.ts";
import { queryOf } from "./query.ts";
import { scopesOf } from "./scopes.ts";

/**
 * What an acquire would decide on, read without a lock: for finding out what it would get. Nothing that is decided on it
 * may be written. `tx` reads from one snapshot.
 */
export async function glimpse(
  tx: Tx,
  newId: NewId,
  { tenantId, projectId, holderKind, holderId }: AcquireOperation,
  pools: readonly WorkerPool[],
): Promise<Capacity> {
  const now = await transactionNow(tx);
  const holder = { tenantId, holderKind, holderId };
  const ended = await tx.endedHolder.count({ where: holder });
  const open = await tx.capacityLease.findMany({ where: { ...holder, state: { in: ["WAITING", "ACTIVE"] } } });
  // One that is over is about to end, and in nobody's way.
  const leases = open.filter((lease) => !isOverdue(lease, now));
  const inPools = pools.map(({ tenantId: poolTenantId, id: poolId }) => ({ poolTenantId, poolId }));
  const flows = await tx.fairShare.findMany({ where: { tenantId, projectId: { in: ["", projectId] }, OR: inPools } });
  const scopes = await scopesOf(tx, tenantId, [projectId]);
  const held = leases.map(({ poolTenantId, poolId: id }) => ({ tenantId: poolTenantId, id }));
  const elsewhere = await tx.workerPool.findMany({ where: { OR: held } });
  return {
    query: queryOf(tx),
    newId,
    at: now,
    now,
    pools: new Map([...elsewhere, ...pools].map((pool) => [keyOf(pool.tenantId, pool.id), pool])),
    scopes: new Map([...scopes].map(([name, scope]) => [keyOf(tenantId, name), scope])),
    flows: new Map(flows.map((flow) => [flowKey(flow), flow])),
    leases: new Map(leases.map((lease) => [leaseKey(lease), lease])),
    live: new Map(leases.map((lease) => [holderKey(lease), leaseKey(lease)])),
    opened: { pools: [], scopes: [] },
    places: new Map(),
    endedHolders: new Set(ended > 0 ? [keyOf(tenantId, holderKind, holderId)] : []),
    drainDeadlines: new Map(),
    overdue: [],
    changes: noChanges(),
    told: new Map(),
    announces: false,
    restless: new Set(),
    granting: new Set(),
    stirred: false,
  };
}
