import type { WorkerPool } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";
import type { AcquireOperation, PoolSelector } from "./lease-operation.ts";
import { carrying } from "../pools/pool-labels.ts";

/**
 * The pools that may grant what a tenant asks for, by owner and id, which is the order of their locks. Of a pool that is
 * named: that one, whatever its state. Of a selector: the tenant's own and the shared ones of the kind that carry all the
 * labels and may ever grant again. Empty where there is none.
 */
export async function candidatePools(
  tx: Tx,
  tenantId: string,
  target: AcquireOperation["target"],
): Promise<WorkerPool[]> {
  return "poolId" in target ? namedPool(tx, tenantId, target.poolId) : selectedPools(tx, tenantId, target.selector);
}

/** A tenant's own pool hides the shared one of its name. */
async function namedPool(tx: Tx, tenantId: string, id: string): Promise<WorkerPool[]> {
  const pools = await tx.workerPool.findMany({ where: { id, OR: [{ tenantId }, { shared: true }] } });
  const own = pools.filter((pool) => pool.tenantId === tenantId);
  return own.length > 0 ? own : pools;
}

function selectedPools(tx: Tx, tenantId: string, { kind, labels }: PoolSelector): Promise<WorkerPool[]> {
  return tx.workerPool.findMany({
    where: {
      kind,
      OR: [{ tenantId }, { shared: true }],
      state: { in: ["PROVISIONING", "ACTIVE", "CORDONED"] },
      AND: carrying(labels),
    },
    orderBy: [{ tenantId: "asc" }, { id: "asc" }],
  });
}
