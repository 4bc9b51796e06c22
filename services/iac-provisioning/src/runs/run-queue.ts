import { Prisma, type PrismaClient } from "../../generated/prisma/client.ts";
import type { Context, Tx } from "../context.ts";
import type { Run } from "./run-row.ts";

/**
 * The queue of run executions. A job says that some run may have its turn, and an executor chooses which: see
 * `execution/next-run.ts`. It is named after the run that was ready when it was made, so that there is one for each that waits,
 * and after its epoch: the job of an executor that was killed counts as under way until the queue notices, which must
 * not keep the run from the next executor.
 */
export const RUN_QUEUE = "iac-provisioning.runs";

/**
 * How many jobs one sweep asks for. More runs than that may wait: a job serves any of them, so those that got none
 * come with a later sweep.
 */
const BATCH = 200;

/** The states that aren't over: the words of the partial index `provisioning_run_open`, which a query has to repeat. */
export const OPEN_STATES = Prisma.sql`
  ('QUEUED', 'PLANNING', 'AWAITING_APPROVAL', 'APPROVED', 'APPLYING', 'CANCELLING', 'INDETERMINATE')`;

/**
 * Whether `run` waits for nothing but an executor: when it is approved, and when it is the first in its environment's
 * queue and no other run holds the environment. A run that only plans holds nothing and waits for nobody.
 */
export const IS_READY = Prisma.sql`
  run.state IN ('QUEUED', 'APPROVED')
  AND (run.state = 'APPROVED' OR run.mode = 'PLAN_ONLY' OR NOT EXISTS (
    SELECT FROM provisioning_run other
    WHERE other.environment_id = run.environment_id AND other.mode <> 'PLAN_ONLY' AND other.id <> run.id
      AND other.state IN ${OPEN_STATES}
      AND (other.state <> 'QUEUED' OR (other.queued_at, other.id) < (run.queued_at, run.id))))`;

/** Whether it is this run's turn in its environment. Certain only under the environment's lock. */
export async function isReady(tx: Tx, runId: string): Promise<boolean> {
  const ready = await tx.$queryRaw<unknown[]>`
    SELECT FROM provisioning_run run WHERE run.id = ${runId}::uuid AND ${IS_READY}`;
  return ready.length > 0;
}

/** Asks executors for whatever of an environment can go on, or of all environments. Returns the runs' ids. */
export async function enqueueReady(context: Context, environmentId?: string): Promise<string[]> {
  const ready = await readyRuns(context.client, environmentId);
  for (const run of ready) await enqueueRun(context, run);
  return ready.map(({ id }) => id);
}

/** Asks executors for a run as it waits now. */
export function enqueueRun(context: Context, { id, executorEpoch }: WaitingRun): Promise<void> {
  return context.enqueue(RUN_QUEUE, `${id}.${executorEpoch}`, { runId: id });
}

type WaitingRun = Pick<Run, "id" | "executorEpoch">;

async function readyRuns(client: PrismaClient, environmentId?: string): Promise<WaitingRun[]> {
  const there = environmentId === undefined ? Prisma.empty : Prisma.sql`run.environment_id = ${environmentId} AND`;
  return client.$queryRaw<WaitingRun[]>`
    SELECT run.id, run.executor_epoch AS "executorEpoch" FROM provisioning_run run
    WHERE ${there} ${IS_READY} ORDER BY run.queued_at, run.id LIMIT ${BATCH}`;
}
