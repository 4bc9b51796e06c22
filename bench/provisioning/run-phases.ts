import type pg from "pg";

/** How long a run took from one state to the next, in milliseconds of the database's clock. */
export interface RunPhases {
  /** QUEUED, from the call's transaction to the executor's. */
  readonly pickup: number;
  readonly planning: number;
  /** APPROVED, with nobody to wait for. */
  readonly handover: number;
  readonly applying: number;
}

const PHASES = `
  SELECT extract(epoch FROM started - created)::float8 * 1000 AS pickup,
         extract(epoch FROM planned - started)::float8 * 1000 AS planning,
         extract(epoch FROM applying - planned)::float8 * 1000 AS handover,
         extract(epoch FROM ended - applying)::float8 * 1000 AS applying
  FROM (
    SELECT min(at) FILTER (WHERE event = 'create') AS created,
           min(at) FILTER (WHERE event = 'start') AS started,
           min(at) FILTER (WHERE event = 'plan') AS planned,
           min(at) FILTER (WHERE event = 'startApply') AS applying,
           min(at) FILTER (WHERE event = 'complete') AS ended
    FROM transition
    WHERE tenant_id = $1 AND aggregate = 'ProvisioningRun' AND aggregate_id = $2
  ) AS instants`;

/** Of a run that was applied. What it didn't go through, since nothing was to change, is NaN. */
export async function phasesOf(aside: pg.Pool, tenantId: string, runId: string): Promise<RunPhases> {
  const { rows } = await aside.query<Record<keyof RunPhases, number | null>>(PHASES, [tenantId, runId]);
  const [found] = rows;
  return {
    pickup: found?.pickup ?? NaN,
    planning: found?.planning ?? NaN,
    handover: found?.handover ?? NaN,
    applying: found?.applying ?? NaN,
  };
}
