import type { CapacityLease, PoolKind, WorkerPool } from "../generated/prisma/client.ts";
import type { Tx } from "./context.ts";

/** The limit of a quota that the leases of a kind of pool count against. */
export interface Dimension {
  limit: "concurrentRuns" | "concurrentSandboxes";
  used: "usedRuns" | "usedSandboxes";
}

/** A GENERAL pool's leases count against its size alone. */
export function dimensionOf(kind: PoolKind): Dimension | undefined {
  switch (kind) {
    case "RUN_WORKERS":
      return { limit: "concurrentRuns", used: "usedRuns" };
    case "SANDBOX_HOSTS":
      return { limit: "concurrentSandboxes", used: "usedSandboxes" };
    case "GENERAL":
      return undefined;
  }
}

type Charged = Pick<CapacityLease, "tenantId" | "projectId" | "poolTenantId" | "poolId" | "units">;

/** Charges a lease to its pool, its tenant and its project. The pool that it returns has spent a fencing token on it. */
export async function charge(tx: Tx, lease: Charged): Promise<WorkerPool> {
  const pool = await tx.workerPool.update({
    where: poolOf(lease),
    data: { used: { increment: lease.units }, nextToken: { increment: 1 } },
  });
  await addToScopes(tx, pool, lease, lease.units);
  return pool;
}

/** Takes a lease off all that it was charged to. */
export async function giveBack(tx: Tx, lease: Charged): Promise<void> {
  const pool = await tx.workerPool.update({ where: poolOf(lease), data: { used: { decrement: lease.units } } });
  await addToScopes(tx, pool, lease, -lease.units);
}

async function addToScopes(
  tx: Tx,
  { kind }: WorkerPool,
  { tenantId, projectId }: Charged,
  units: number,
): Promise<void> {
  const dimension = dimensionOf(kind);
  if (!dimension) return;
  await tx.scopeUsage.updateMany({
    where: { tenantId, projectId: { in: ["", projectId] } },
    data: { [dimension.used]: { increment: units } },
  });
}

function poolOf({ poolTenantId: tenantId, poolId: id }: Charged) {
  return { tenantId_id: { tenantId, id } };
}
