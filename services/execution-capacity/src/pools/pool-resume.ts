import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { continuedCause } from "@runtime-cloud/eventing/continued-cause";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { workerPool } from "@runtime-cloud/state-machines/worker-pool";
import type { PoolKey } from "../capacity/capacity-lock.ts";
import type { Context, ServiceUnit, Told } from "../context.ts";
import { lockCapacity, settleClaim } from "../capacity/unit-capacity.ts";
import { advancePool, findPool } from "./worker-pool.ts";

const KIND = "pool-resume";
const SWEEP_EVERY_MS = 2_000;

/** Uncordons the pools whose pause is over, a pool at a time; those who waited have their turn with it. */
export function poolResume(context: Context): Deadline {
  const { client, newId } = context;
  return {
    kind: KIND,
    sweepEveryMs: SWEEP_EVERY_MS,
    async run() {
      const due = { state: "CORDONED", resumeAt: { lte: await transactionNow(client) } } as const;
      const pool = await client.workerPool.findFirst({ where: due, orderBy: { resumeAt: "asc" } });
      if (!pool) return { ended: [] };
      const { tenantId, id } = pool;
      const asked = { tenantId, aggregate: workerPool.id, id, event: "cordon" };
      const cause = (await continuedCause(client, asked, `deadline:${KIND}`)) ?? deadlineCause(KIND, newId);
      const resumed = await unitOfWork(context, cause, (unit) => resume(context, unit, { tenantId, id }));
      return { ended: resumed ? [id] : [], more: resumed };
    },
  };
}

async function resume(told: Told, unit: ServiceUnit, key: PoolKey): Promise<boolean> {
  const claim = { pools: [key] };
  const { now } = await lockCapacity(unit, claim);
  const pool = await findPool(unit.tx, key);
  // An operator may have uncordoned it, and cordoned it for longer, before the lock was held.
  if (pool?.state !== "CORDONED" || !pool.resumeAt || pool.resumeAt > now) return false;
  await advancePool(unit, pool, { type: "uncordon" });
  await settleClaim(told, unit, claim);
  return true;
}
