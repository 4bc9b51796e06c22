import type { PrismaClient } from "../../generated/prisma/client.ts";

/** How far an apply has come, in resources that its plan changes. */
export interface Progress {
  planned: number;
  done: number;
  failed: number;
  /** Addresses that are being worked on, in the plan's order, the first {@link MAX_ADDRESSES}. */
  inProgress: string[];
}

const MAX_ADDRESSES = 20;

const NOT_BEGUN: Progress = { planned: 0, done: 0, failed: 0, inProgress: [] };

/**
 * The progress of runs whose apply has begun, by id, from their receipts; it reads each receipt whole. Between the two
 * steps of a replacement the receipt says FAILED or DELETED_NOT_RECREATED, as it must if the engine went no further: as
 * long as the run is being worked on and nothing was said of a failure, that is progress.
 */
export async function readProgress(
  client: PrismaClient,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, Progress>> {
  if (runIds.length === 0) return new Map();
  const rows = await client.$queryRaw<(Progress & { runId: string })[]>`
    SELECT run_id AS "runId", count(*)::int AS planned,
      (count(*) FILTER (WHERE step = 'done'))::int AS done,
      (count(*) FILTER (WHERE step = 'failed'))::int AS failed,
      coalesce((array_agg(address ORDER BY ordinal) FILTER (WHERE step = 'working'))[1:${MAX_ADDRESSES}::int], '{}')
        AS "inProgress"
    FROM (
      SELECT entry.run_id, entry.ordinal, entry.address, CASE
        WHEN entry.outcome = 'APPLIED' THEN 'done'
        WHEN run.state IN ('APPLYING', 'CANCELLING') AND (
          entry.outcome = 'INDETERMINATE' OR (
            entry.outcome IN ('FAILED', 'DELETED_NOT_RECREATED')
            AND cardinality(entry.actions) > 1 AND entry.diagnostic IS NULL
          )) THEN 'working'
        WHEN entry.outcome IN ('FAILED', 'DELETED_NOT_RECREATED') THEN 'failed'
      END AS step
      FROM receipt_entry entry JOIN provisioning_run run ON run.id = entry.run_id
      WHERE entry.run_id = ANY(${runIds}::uuid[]) AND NOT entry.actions <@ ARRAY['no-op', 'read']
    ) change
    GROUP BY run_id`;
  const begun = new Map(rows.map(({ runId, ...progress }) => [runId, progress]));
  return new Map(runIds.map((id) => [id, begun.get(id) ?? NOT_BEGUN]));
}

/** Whether two looks at a run's progress tell the same. */
export function isSameProgress(one: Progress | undefined, other: Progress | undefined): boolean {
  return (
    one?.planned === other?.planned &&
    one?.done === other?.done &&
    one?.failed === other?.failed &&
    one?.inProgress.join("\n") === other?.inProgress.join("\n")
  );
}
