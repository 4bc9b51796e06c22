import type { PrismaClient } from "../generated/prisma/client.ts";
import type { Context, Tx } from "./context.ts";

/** The queue of run executions; a job says that a run may have its turn, the row says whether it has. */
export const RUN_QUEUE = "iac-provisioning.runs";

/** How many runs one sweep asks for. */
const BATCH = 200;

/** Whether it is this run's turn: see {@link readyRuns}. Certain only under the environment's lock. */
export async function isReady(tx: Tx, runId: string): Promise<boolean> {
  const ready = await readyRuns(tx, { runId });
  return ready.length > 0;
}

/** Asks an executor for whatever of an environment can go on, or of all environments. Returns the runs' ids. */
export async function enqueueReady(context: Context, environmentId?: string): Promise<string[]> {
  const ready = await readyRuns(context.client, environmentId === undefined ? {} : { environmentId });
  for (const runId of ready) await enqueueRun(context, runId);
  return ready;
}

export function enqueueRun(context: Context, runId: string): Promise<void> {
  return context.enqueue(RUN_QUEUE, runId, { runId });
}

/**
 * The runs that wait for nothing but an executor: approved ones, and in each environment the first in the queue when no
 * other run holds it. Runs that only plan hold nothing and wait for nobody.
 */
async function readyRuns(db: PrismaClient | Tx, only: { runId?: string; environmentId?: string }): Promise<string[]> {
  const { runId = null, environmentId = null } = only;
  const rows = await db.$queryRaw<{ id: string }[]>`
    SELECT run.id
    FROM provisioning_run run
    WHERE (${runId}::uuid IS NULL OR run.id = ${runId}::uuid)
      AND (${environmentId}::text IS NULL OR run.environment_id = ${environmentId})
      AND run.state IN ('QUEUED', 'APPROVED')
      AND (run.state = 'APPROVED' OR run.mode = 'PLAN_ONLY' OR NOT EXISTS (
        SELECT FROM provisioning_run other
        WHERE other.environment_id = run.environment_id AND other.mode <> 'PLAN_ONLY' AND other.id <> run.id
          AND (other.state IN ('PLANNING', 'AWAITING_APPROVAL', 'APPROVED', 'APPLYING', 'CANCELLING', 'INDETERMINATE')
            OR (other.state = 'QUEUED' AND (other.queued_at, other.id) < (run.queued_at, run.id)))))
    ORDER BY run.queued_at, run.id
    LIMIT ${BATCH}`;
  return rows.map(({ id }) => id);
}
