import { commit } from "@runtime-cloud/eventing/commit";
import { accept } from "@runtime-cloud/eventing/decision";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { type PoolEvent, workerPool } from "@runtime-cloud/state-machines/worker-pool";
import type { WorkerPool } from "../../generated/prisma/client.ts";
import type { PoolKey } from "../capacity/capacity-lock.ts";
import type { ServiceUnit, Tx } from "../context.ts";

/** Under the pool's lock, or its owner's. */
export async function advancePool(unit: ServiceUnit, pool: WorkerPool, event: PoolEvent): Promise<WorkerPool> {
  const { tenantId, id, version } = pool;
  return commit(unit, accept(workerPool, pool, event), (columns) =>
    unit.tx.workerPool.update({
      where: { tenantId_id: { tenantId, id }, version },
      data: { ...columns, version: { increment: 1 } },
    }),
  );
}

export function findPool(tx: Tx, { tenantId, id }: PoolKey): Promise<WorkerPool | null> {
  return tx.workerPool.findUnique({ where: { tenantId_id: { tenantId, id } } });
}

/** A pool of the tenant's own. */
export async function ownPool(tx: Tx, tenantId: string, id: string): Promise<WorkerPool> {
  const pool = await findPool(tx, { tenantId, id });
  if (!pool) throw unknownPool(id);
  return pool;
}

/** The pool that an id means to a tenant: its own, else the one that is shared under that id. */
export async function usablePool(tx: Tx, tenantId: string, id: string): Promise<WorkerPool> {
  const pool =
    (await findPool(tx, { tenantId, id })) ?? (await tx.workerPool.findFirst({ where: { id, shared: true } }));
  if (!pool) throw unknownPool(id);
  return pool;
}

function unknownPool(id: string): NotFound {
  return new NotFound(`pool ${id} does not exist: create it with SetWorkerPool`);
}
