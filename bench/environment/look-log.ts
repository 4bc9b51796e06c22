import { until } from "@runtime-cloud/local-servers/until";
import type pg from "pg";

/** Has the service's database note when each look was due, and when each sight was taken in. */
export async function logLooks(pool: pg.Pool): Promise<void> {
  await pool.query(LOG);
}

const LOG = `
  CREATE UNLOGGED TABLE bench_due (environment_id text, due_at timestamptz);
  CREATE INDEX ON bench_due (due_at);
  CREATE UNLOGGED TABLE bench_sight (environment_id text, observer text, at timestamptz);
  CREATE INDEX ON bench_sight (environment_id, observer, at);

  CREATE FUNCTION bench_note_due() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO bench_due VALUES (OLD.id, OLD.observe_at);
    RETURN NULL;
  END $$;
  CREATE TRIGGER bench_note_due AFTER UPDATE OF observe_at ON inventory
    FOR EACH ROW WHEN (OLD.observe_at IS DISTINCT FROM NEW.observe_at) EXECUTE FUNCTION bench_note_due();

  CREATE FUNCTION bench_note_sight() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO bench_sight VALUES (NEW.inventory_id, NEW.observer, clock_timestamp());
    RETURN NULL;
  END $$;
  CREATE TRIGGER bench_note_sight AFTER UPDATE ON observer_report
    FOR EACH ROW EXECUTE FUNCTION bench_note_sight()`;

/** One look that the schedule wanted: how long after that all who look by the schedule had their sights taken in. */
export interface DueLook {
  readonly environmentId: string;
  readonly latenessMs: number;
}

/** Looks come late, but not by minutes. */
const ALL_TAKEN_WITHIN_MS = 120_000;

/** All that were due from one instant of the database's clock to another; waits until they are had. */
export async function looksDue(pool: pg.Pool, from: Date, to: Date): Promise<readonly DueLook[]> {
  await until("the last due look to be claimed", ALL_TAKEN_WITHIN_MS, async () => {
    const { rows } = await pool.query("SELECT FROM inventory WHERE observe_at < $1 LIMIT 1", [to]);
    return rows.length === 0 || undefined;
  });
  return until("the last due look to be taken in", ALL_TAKEN_WITHIN_MS, async () => {
    const { rows } = await pool.query<{ environmentId: string; latenessMs: number | null }>(DUE_LOOKS, [from, to]);
    const taken = rows.flatMap(({ environmentId, latenessMs }) =>
      latenessMs === null ? [] : [{ environmentId, latenessMs }],
    );
    return taken.length === rows.length ? taken : undefined;
  });
}

const DUE_LOOKS = `
  SELECT environment_id AS "environmentId",
    CASE WHEN bool_and(at IS NOT NULL) THEN extract(epoch FROM max(at) - due_at)::float8 * 1000 END AS "latenessMs"
  FROM (
    SELECT due.environment_id, due.due_at, (
      SELECT min(sight.at) FROM bench_sight AS sight
      WHERE sight.environment_id = due.environment_id AND sight.observer = scheduled.observer AND sight.at >= due.due_at
    ) AS at
    FROM bench_due AS due, (VALUES ('engine'), ('http')) AS scheduled (observer)
    WHERE due.due_at >= $1 AND due.due_at < $2
  ) AS taken
  GROUP BY environment_id, due_at`;

/** What is due for less is on its way. */
const ON_ITS_WAY_SECONDS = 2;

/** Waits until the service has made up for whatever held it up: no look has been due for long. */
export async function caughtUp(pool: pg.Pool): Promise<void> {
  await until("the schedule to be made up for", ALL_TAKEN_WITHIN_MS, async () => {
    const { rows } = await pool.query(OVERDUE, [ON_ITS_WAY_SECONDS]);
    return rows.length === 0 || undefined;
  });
}

const OVERDUE = `
  SELECT FROM inventory WHERE observe_at < clock_timestamp() - make_interval(secs => $1)
  UNION ALL
  SELECT FROM bench_due AS due, (VALUES ('engine'), ('http')) AS scheduled (observer)
  WHERE due.due_at < clock_timestamp() - make_interval(secs => $1) AND NOT EXISTS (
    SELECT FROM bench_sight AS sight
    WHERE sight.environment_id = due.environment_id AND sight.observer = scheduled.observer AND sight.at >= due.due_at)
  LIMIT 1`;

/** Who has reported on an environment since an instant. */
export async function reportedSince(pool: pg.Pool, from: Date, observer: string): Promise<number> {
  const { rows } = await pool.query<{ environments: number }>(
    "SELECT count(DISTINCT environment_id)::int AS environments FROM bench_sight WHERE observer = $1 AND at >= $2",
    [observer, from],
  );
  return rows[0]?.environments ?? 0;
}
