import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type pg from "pg";
import { committed, portions } from "../events/committed.ts";

const RUNS_PER_INSERT = 1_000;
const RESOURCES = 3;
const SECONDS_BETWEEN = 60;

/** Adds so many runs that were applied, spread over the specifications and their environments, one a minute up to now. */
export async function addFinishedRuns(
  pool: pg.Pool,
  specificationIds: readonly string[],
  count: number,
): Promise<void> {
  const runIds = Array.from({ length: count }, () => uuidv7());
  let place = 0;
  await committed(pool, async (client) => {
    // A row is born in the state that it would have come to.
    await client.query("SET LOCAL session_replication_role = replica");
    for (const some of portions(runIds, RUNS_PER_INSERT)) {
      await client.query(RUNS, [some, specificationIds, place, count, SECONDS_BETWEEN, RESOURCES]);
      await client.query(HISTORY, [some]);
      await client.query(RECEIPTS, [some, RESOURCES]);
      place += some.length;
    }
  });
  await pool.query("VACUUM ANALYZE");
}

const RUNS = `
  INSERT INTO provisioning_run
    (id, version, state, tenant_id, project_id, environment_id, kind, mode, specification_id, specification_version,
     requested_by, separate_approver, engine, plan_digest, adds, state_lineage, state_serial, outputs, executor_id,
     executor_epoch, queued_at, planned_at, applying_at, ended_at, expires_at)
  SELECT run.id, 4, 'APPLIED', specification.tenant_id, specification.project_id, specification.environment_id,
    'BASELINE', 'APPLY', specification.id, specification.specification_version, 'bench', false, 'terraform 1.11.4',
    specification.content_digest, $6, 'a-lineage', 1, '{"network_id": "n-1"}', 'an-executor', 2, run.at,
    run.at + interval '1 second', run.at + interval '1 second', run.at + interval '2 seconds',
    run.at + interval '1 day'
  FROM (
    SELECT id, now() - ($4::int - $3::int - place) * make_interval(secs => $5) AS at,
      ($2::uuid[])[1 + ($3::int + place) % cardinality($2::uuid[])] AS specification_id
    FROM unnest($1::uuid[]) WITH ORDINALITY AS given (id, place)
  ) AS run
  JOIN specification ON specification.id = run.specification_id`;

const HISTORY = `
  INSERT INTO transition
    (aggregate, aggregate_id, tenant_id, version, from_state, event, to_state, actor, correlation_id, at)
  SELECT 'ProvisioningRun', run.id, run.tenant_id, edge.version, edge.from_state, edge.event, edge.to_state, 'bench',
    run.id, run.queued_at
  FROM provisioning_run run, (VALUES
    (0, '[*]', 'create', 'QUEUED'), (1, 'QUEUED', 'start', 'PLANNING'), (2, 'PLANNING', 'plan', 'APPROVED'),
    (3, 'APPROVED', 'startApply', 'APPLYING'), (4, 'APPLYING', 'complete', 'APPLIED')
  ) AS edge (version, from_state, event, to_state)
  WHERE run.id = ANY($1::uuid[])`;

const RECEIPTS = `
  INSERT INTO receipt_entry (run_id, ordinal, address, resource_type, outcome, actions, resource_id, duration_ms)
  SELECT id, ordinal, 'terraform_data.item[' || ordinal || ']', 'terraform_data', 'APPLIED', '{create}', 'i-' || ordinal, 1
  FROM unnest($1::uuid[]) AS run (id), generate_series(0, $2::int - 1) AS ordinal`;
