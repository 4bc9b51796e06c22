import { create, type MessageShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { WorkerPoolSchema } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/pools_pb";
import { PoolKind, PoolScaling, PoolState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import type { WorkerPool } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

type PoolMessage = MessageShape<typeof WorkerPoolSchema>;

/** Pools as they are answered, with their labels. */
export async function poolMessages(tx: Tx, pools: readonly WorkerPool[]): Promise<PoolMessage[]> {
  const keys = pools.map(({ tenantId, id: poolId }) => ({ tenantId, poolId }));
  const labels = await tx.poolLabel.findMany({ where: { OR: keys }, orderBy: { name: "asc" } });
  return pools.map((pool) => {
    const own = labels.filter(({ tenantId, poolId }) => tenantId === pool.tenantId && poolId === pool.id);
    return message(pool, Object.fromEntries(own.map(({ name, value }) => [name, value])));
  });
}

export async function poolMessage(tx: Tx, pool: WorkerPool): Promise<PoolMessage> {
  const labels = await tx.poolLabel.findMany({ where: { tenantId: pool.tenantId, poolId: pool.id } });
  return message(pool, Object.fromEntries(labels.map(({ name, value }) => [name, value])));
}

function message(pool: WorkerPool, labels: Record<string, string>): PoolMessage {
  const { drainDeadline, resumeAt, note, used, currentSize } = pool;
  return create(WorkerPoolSchema, {
    poolId: pool.id,
    tenantId: pool.tenantId,
    kind: PoolKind[pool.kind],
    scaling: PoolScaling[pool.scaling],
    state: PoolState[pool.state],
    currentSize,
    desiredSize: pool.desiredSize,
    used,
    overCommitted: Math.max(0, used - currentSize),
    waiting: pool.waiting,
    generation: pool.generation,
    shared: pool.shared,
    labels,
    ...(drainDeadline && { drainDeadline: timestampFromDate(drainDeadline) }),
    ...(resumeAt && { resumeAt: timestampFromDate(resumeAt) }),
    ...(note !== null && { note }),
  });
}
