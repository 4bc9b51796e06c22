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

/** Adds a lease's units to all that it counts against: its pool, its tenant and its project. Less than 0 gives back. */
export async function charge(
  tx: Tx,
  pool: Pick<WorkerPool, "tenantId" | "id" | "kind">,
  { tenantId, projectId }: Pick<CapacityLease, "tenantId" | "projectId">,
  units: number,
): Promise<void> {
  await tx.workerPool.update({
    where: { tenantId_id: { tenantId: pool.tenantId, id: pool.id } },
    data: { used: { increment: units } },
  });
  const dimension = dimensionOf(pool.kind);
  if (!dimension) return;
  await tx.scopeUsage.updateMany({
    where: { tenantId, projectId: { in: ["", projectId] } },
    data: { [dimension.used]: { increment: units } },
  });
}
