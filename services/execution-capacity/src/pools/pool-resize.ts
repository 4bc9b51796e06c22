import { type Cause, deadlineCause } from "@runtime-cloud/eventing/cause";
import { continuedCause } from "@runtime-cloud/eventing/continued-cause";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { callFor } from "@runtime-cloud/eventing/peer";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { DEFAULT_DEADLINE_MS } from "@runtime-cloud/service-kit/call-limits";
import { decide } from "@runtime-cloud/state-machines/decide";
import { workerPool } from "@runtime-cloud/state-machines/worker-pool";
import type { WorkerPool } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit, Told } from "../context.ts";
import { takeSizes } from "./pool-provisioned.ts";
import { requestResize } from "./resize-request.ts";
import { followResize } from "./resize-run.ts";
import type { ResizeStep } from "./resize-step.ts";
import { lockCapacity } from "../capacity/unit-capacity.ts";
import { advancePool, ownPool } from "./worker-pool.ts";

const KIND = "pool-resize";
const SWEEP_EVERY_MS = 5_000;
/** When IaCProvisioningService is asked again: after as long as the size has been wanted, within these bounds. */
const SHORTEST_MS = 5_000;
const LONGEST_MS = 60_000;
const MAX_NOTE = 1_000;
/** A pool that is being emptied wants no slots, unless its drain is taken back. */
const GROWING = ["PROVISIONING", "ACTIVE", "CORDONED"] as const;

/**
 * Asks IaCProvisioningService for the wanted sizes of elastic pools, each until it answers, and then what became of the
 * run until that has ended. ProvisioningApplied brings the size; a run that ends otherwise leaves its reason as a note.
 */
export function poolResize(context: Context): Deadline {
  const { client, logger } = context;
  return {
    kind: KIND,
    sweepEveryMs: SWEEP_EVERY_MS,
    async run() {
      const now = await transactionNow(client);
      const pool = await client.workerPool.findFirst({
        where: { resizeDueAt: { lte: now }, state: { in: [...GROWING] } },
        orderBy: { resizeDueAt: "asc" },
      });
      if (!pool) return { ended: [] };
      const cause = await resizeCause(context, pool);
      const step = await nextStep(context, pool, cause, now);
      if (step.kind === "unanswered") logger.warn({ err: step.error, poolId: pool.id }, "pool resize not answered");
      await unitOfWork(context, cause, (unit) => record(context, unit, pool, step));
      const waits = step.kind === "unanswered" || step.kind === "under-way";
      return { ended: waits ? [] : [pool.id], more: true };
    },
  };
}

/** Whoever asked for the size goes on in what is declared and planned for it. */
async function resizeCause({ client, newId }: Context, { tenantId, id }: WorkerPool): Promise<Cause> {
  const asked = { tenantId, aggregate: workerPool.id, id, event: "requestSize" };
  return (await continuedCause(client, asked, `deadline:${KIND}`)) ?? deadlineCause(KIND, newId);
}

function nextStep({ provisioning }: Context, pool: WorkerPool, cause: Cause, now: Date): Promise<ResizeStep> {
  const options = callFor(pool.tenantId, cause, { timeoutMs: DEFAULT_DEADLINE_MS });
  return pool.resizeRunId === null
    ? requestResize(provisioning, pool, options)
    : followResize(provisioning, pool, pool.resizeRunId, now, options);
}

async function record(told: Told, unit: ServiceUnit, asked: WorkerPool, step: ResizeStep): Promise<void> {
  const { tenantId, id, generation, resizeRunId } = asked;
  if (step.kind === "applied") return takeSizes(told, unit, tenantId, [step.size]);
  const { now } = await lockCapacity(unit, { pools: [asked] });
  const pool = await ownPool(unit.tx, tenantId, id);
  // Another size is wanted meanwhile, and is due by itself; or the event has brought this one.
  if (pool.generation !== generation || pool.resizeRunId !== resizeRunId) return;
  const data = await duties(unit, pool, step, now);
  await unit.tx.workerPool.update({ where: { tenantId_id: { tenantId, id } }, data });
  if (step.kind !== "failed") return;
  const event = { type: "failProvisioning", reason: step.reason.slice(0, MAX_NOTE), generation } as const;
  if (decide(workerPool, pool, event).accepted) await advancePool(unit, pool, event);
}

type Duties = Pick<WorkerPool, "resizeRunId" | "resizeDueAt">;

/** What is left to ask, and when. */
async function duties(unit: ServiceUnit, pool: WorkerPool, step: ResizeStep, now: Date): Promise<Duties> {
  const nothing = { resizeRunId: null, resizeDueAt: null };
  if (step.kind === "failed" || (step.kind === "planned" && step.runId === null)) return nothing;
  const { tenantId, id: aggregateId } = pool;
  const asked = await unit.tx.transition.findFirst({
    where: { tenantId, aggregate: workerPool.id, aggregateId, event: "requestSize" },
    orderBy: { version: "desc" },
  });
  const wantedForMs = asked ? now.getTime() - asked.at.getTime() : 0;
  const pauseMs = Math.min(Math.max(wantedForMs, SHORTEST_MS), LONGEST_MS);
  const resizeRunId = step.kind === "planned" ? step.runId : pool.resizeRunId;
  return { resizeRunId, resizeDueAt: new Date(now.getTime() + pauseMs) };
}
