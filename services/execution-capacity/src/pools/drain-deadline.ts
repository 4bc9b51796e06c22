import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { WorkerPool } from "../../generated/prisma/client.ts";
import { endLease } from "../capacity/capacity-lease.ts";
import type { Context, ServiceUnit, Told } from "../context.ts";
import { lockCapacity, settleUnit } from "../capacity/unit-capacity.ts";
import { findPool } from "./worker-pool.ts";

const KIND = "drain-deadline";
const SWEEP_EVERY_MS = 2_000;
/** How many leases one transaction takes back, so that it is short. */
const BATCH = 100;

/** Takes back what is still leased at a drain's deadline. The last lease's end makes the pool DRAINED. */
export function drainDeadline(context: Context): Deadline {
  return {
    kind: KIND,
    sweepEveryMs: SWEEP_EVERY_MS,
    async run() {
      const { client } = context;
      const due = { state: "DRAINING", drainDeadline: { lte: await transactionNow(client) } } as const;
      const pool = await client.workerPool.findFirst({ where: due, orderBy: { drainDeadline: "asc" } });
      if (!pool) return { ended: [] };
      const ended = await unitOfWork(context, deadlineCause(KIND, context.newId), (unit) =>
        revokeAll(context, unit, pool),
      );
      return { ended, more: ended.length > 0 };
    },
  };
}

async function revokeAll(told: Told, unit: ServiceUnit, { tenantId, id }: WorkerPool): Promise<string[]> {
  const held = await unit.tx.capacityLease.findMany({
    where: { poolTenantId: tenantId, poolId: id, state: "ACTIVE" },
    orderBy: { dueAt: "asc" },
    take: BATCH,
    select: { tenantId: true, id: true },
  });
  const capacity = await lockCapacity(unit, { leases: held, pools: [{ tenantId, id }] });
  const { now, leases } = capacity;
  const pool = await findPool(unit.tx, { tenantId, id });
  // An operator may have undone the drain, or begun another, before the locks were held.
  if (pool?.state !== "DRAINING" || !pool.drainDeadline || pool.drainDeadline > now) return [];
  for (const lease of leases.values()) {
    if (lease.state !== "ACTIVE" || lease.poolId !== id || lease.poolTenantId !== tenantId) continue;
    endLease(capacity, lease, { type: "revoke", at: now, reason: "DRAIN_DEADLINE" }, unit.cause);
  }
  const changed = await settleUnit(told, unit, capacity);
  return changed.filter(({ endedAt }) => endedAt !== null).map((lease) => lease.id);
}
