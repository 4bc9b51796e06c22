import type { WorkerPool } from "../../generated/prisma/client.ts";
import type { PoolSelector } from "./lease-operation.ts";

/**
 * Of several pools the one that fits `units` best. PACK: where the least is left over, so that large requests find room
 * elsewhere. SPREAD: where the largest share is free. Of equals the first.
 */
export function bestFor(
  pools: readonly WorkerPool[],
  units: number,
  placement: PoolSelector["placement"],
): WorkerPool | undefined {
  const score = placement === "PACK" ? leftOver : taken;
  let best: WorkerPool | undefined;
  for (const pool of pools) if (!best || score(pool, units) < score(best, units)) best = pool;
  return best;
}

/** Slots left over; a pool that has no room comes after all that have. */
function leftOver({ currentSize, used }: WorkerPool, units: number): number {
  const left = currentSize - used - units;
  return left >= 0 ? left : Number.MAX_SAFE_INTEGER + left;
}

/** The share of its slots that would be taken. */
function taken({ currentSize, used }: WorkerPool, units: number): number {
  return currentSize > 0 ? (used + units) / currentSize : Number.MAX_SAFE_INTEGER;
}
