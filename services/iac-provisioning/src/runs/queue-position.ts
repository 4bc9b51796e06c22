import type { PrismaClient } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";
import type { Run } from "./run-row.ts";

export type QueueMember = Pick<Run, "id" | "state" | "mode" | "environmentId">;

/**
 * The places of runs in their environments' queues, by id; 1 is next. Only a run that is QUEUED has one, and none that
 * only plans: it waits for nobody.
 */
export async function queuePositions(
  db: PrismaClient | Tx,
  runs: readonly QueueMember[],
): Promise<ReadonlyMap<string, number>> {
  const queued = runs.filter(({ state, mode }) => state === "QUEUED" && mode !== "PLAN_ONLY");
  if (queued.length === 0) return new Map();
  const ids = queued.map(({ id }) => id);
  const environments = [...new Set(queued.map(({ environmentId }) => environmentId))];
  const rows = await db.$queryRaw<{ id: string; position: number }[]>`
    SELECT id, position FROM (
      SELECT id, (row_number() OVER (PARTITION BY environment_id ORDER BY queued_at, id))::int AS position
      FROM provisioning_run
      WHERE environment_id = ANY(${environments}::text[]) AND state = 'QUEUED' AND mode <> 'PLAN_ONLY'
    ) queue
    WHERE id = ANY(${ids}::uuid[])`;
  return new Map(rows.map(({ id, position }) => [id, position]));
}
