import { Prisma, type PrismaClient } from "../../generated/prisma/client.ts";
import type { Context, Tx } from "../context.ts";

/**
 * The queue of run executions. A job says that some run may have its turn, and an executor chooses which: see
 * `next-run.ts`. It is named after the run that was ready when it was made, so that there is one for each that waits.
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
  for (const runId of ready) await enqueueRun(context, runId);
  return ready;
}

export function enqueueRun(context: Context, runId: string): Promise<void> {
  return context.enqueue(RUN_QUEUE, runId, { runId });
}

async function readyRuns(client: PrismaClient, environmentId?: string): Promise<string[]> {
  const there = environmentId === undefined ? Prisma.empty : Prisma.sql`run.environment_id = ${environmentId} AND`;
  const rows = await client.$queryRaw<{ id: string }[]>`
    SELECT run.id FROM provisioning_run run WHERE ${there} ${IS_READY} ORDER BY run.queued_at, run.id LIMIT ${BATCH}`;
  return rows.map(({ id }) => id);
}
