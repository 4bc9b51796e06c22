import { deadlineCause } from "@runtime-cloud/eventing/cause";
import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { WorkerPool } from "../generated/prisma/client.ts";
import { endLease } from "./capacity-lease.ts";
import { lockCapacity } from "./capacity-lock.ts";
import type { Context, ServiceUnit, Wakes } from "./context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { END_BATCH, settle } from "./settle.ts";
import { findPool } from "./worker-pool.ts";

const KIND = "drain-deadline";
const SWEEP_EVERY_MS = 2_000;

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

async function revokeAll(context: Wakes, unit: ServiceUnit, { tenantId, id }: WorkerPool): Promise<string[]> {
  const held = { poolTenantId: tenantId, poolId: id, state: "ACTIVE" } as const;
  const batch = () => unit.tx.capacityLease.findMany({ where: held, orderBy: { id: "asc" }, take: END_BATCH });
  const capacity = await lockCapacity(context, unit, { scopes: await batch(), pools: [{ tenantId, id }] });
  const { now } = capacity;
  const pool = await findPool(unit.tx, { tenantId, id });
  // An operator may have undone the drain, or begun another, before the locks were held.
  if (pool?.state !== "DRAINING" || !pool.drainDeadline || pool.drainDeadline > now) return [];
  const leases = await batch();
  for (const lease of leases) await endLease(capacity, lease, { type: "revoke", at: now, reason: "DRAIN_DEADLINE" });
  return [...leases.map((lease) => lease.id), ...(await settle(capacity))];
}
