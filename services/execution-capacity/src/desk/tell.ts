import type { Capacity } from "../capacity/capacity.ts";
import type { Told } from "../context.ts";

/** Tells what a committed change has made of leases, and asks for a wake-up where one will be over by time. */
export async function tell({ news, arm }: Told, { told }: Capacity): Promise<void> {
  const leases = [...told.values()];
  news.tell(leases);
  await Promise.all(
    leases.flatMap(({ state, dueAt, poolTenantId, poolId }) => {
      if (!dueAt) return [];
      const kind = state === "ACTIVE" ? "lease-expiry" : "wait-over";
      return [arm(kind, dueAt, { pool: poolId, owner: poolTenantId })];
    }),
  );
}
