import type { Prisma } from "../../generated/prisma/client.ts";
import type { PoolKey } from "../capacity/capacity-lock.ts";
import type { Tx } from "../context.ts";

/** Labels by name. */
export type Labels = Readonly<Record<string, string>>;

/** Gives a pool these labels and takes all others from it. */
export async function setLabels(tx: Tx, { tenantId, id: poolId }: PoolKey, labels: Labels): Promise<void> {
  await tx.poolLabel.deleteMany({ where: { tenantId, poolId } });
  const data = Object.entries(labels).map(([name, value]) => ({ tenantId, poolId, name, value }));
  await tx.poolLabel.createMany({ data });
}

/** Conditions that a pool meets which carries all of these labels, others or not. */
export function carrying(labels: Labels): Prisma.WorkerPoolWhereInput[] {
  return Object.entries(labels).map(([name, value]) => ({ labels: { some: { name, value } } }));
}
