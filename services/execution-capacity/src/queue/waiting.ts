import type { CapacityLease, WaitReason, WorkerPool } from "../../generated/prisma/client.ts";
import type { Scope } from "../capacity/capacity.ts";
import type { Tx } from "../context.ts";
import { obstacleTo } from "../desk/obstacle.ts";
import { positionsOf } from "./position.ts";
import { scopesOf } from "../capacity/scopes.ts";

/** Why a holder waits at this moment, and its place in the pool's queue; 1 is next. */
export interface Standing {
  reason: WaitReason;
  position: number;
}

/** How the waiting ones among one tenant's leases stand, by lease. */
export async function standingsOf(tx: Tx, leases: readonly CapacityLease[]): Promise<Map<string, Standing>> {
  const waiting = leases.filter(({ state }) => state === "WAITING");
  const [first] = waiting;
  if (!first) return new Map();
  const keys = waiting.map(({ poolTenantId: tenantId, poolId: id }) => ({ tenantId, id }));
  const pools = await tx.workerPool.findMany({ where: { OR: distinct(keys) } });
  const projects = new Set(waiting.map((lease) => lease.projectId));
  const scopes = await scopesOf(tx, first.tenantId, [...projects]);
  const positions = await positionsOf(tx, waiting);
  return new Map(
    waiting.map((lease) => {
      const pool = pools.find(({ tenantId, id }) => tenantId === lease.poolTenantId && id === lease.poolId);
      const position = positions.get(lease.id);
      // Without a place no pool carries the labels that it selects by any more.
      const reason = position === undefined ? "POOL_NOT_ACCEPTING" : reasonOf(lease, pool, scopes);
      return [lease.id, { reason, position: position ?? 0 }];
    }),
  );
}

/** Nothing of its own in its way: others come first. */
function reasonOf(lease: CapacityLease, pool: WorkerPool | undefined, scopes: ReadonlyMap<string, Scope>): WaitReason {
  const [tenant, project] = ["", lease.projectId].map((projectId) => scopes.get(projectId));
  const obstacle = pool && tenant && project && obstacleTo(lease, pool, tenant, project);
  return obstacle?.reason ?? "POOL_FULL";
}

function distinct(keys: readonly { tenantId: string; id: string }[]) {
  return [...new Map(keys.map((key) => [`${key.id}/${key.tenantId}`, key])).values()];
}
