import type pg from "pg";

/** What a query found wrong, in words; [] while the invariants hold. */
async function found(database: pg.Pool, name: string, text: string, values: unknown[] = []): Promise<string[]> {
  const { rows } = await database.query<{ wrong: string }>({ name, text, values });
  return rows.map(({ wrong }) => wrong);
}

/** I3, I6 and the queues' own book-keeping: cheap enough for every burst. Nothing may be under way. */
export function brokenNow(database: pg.Pool): Promise<string[]> {
  return found(
    database,
    "broken-now",
    `SELECT 'I3: ' || tenant_id || ' ' || holder_id || ' has ' || count(*) || ' live leases of ' || resource AS wrong
     FROM capacity_lease WHERE state IN ('WAITING', 'ACTIVE')
     GROUP BY tenant_id, holder_kind, holder_id, resource HAVING count(*) > 1
     UNION ALL
     SELECT 'I6: ' || holder_id || ' has ended and has the ' || state || ' lease ' || id
     FROM capacity_lease JOIN ended_holder USING (tenant_id, holder_kind, holder_id)
     WHERE state IN ('WAITING', 'ACTIVE')
     UNION ALL
     SELECT 'queue: lease ' || coalesce(lease.id, place.lease_id) || ' is ' || coalesce(lease.state::text, 'gone')
       || ' and has ' || count(place.lease_id) || ' places'
     FROM (SELECT * FROM capacity_lease WHERE state = 'WAITING') lease
     FULL JOIN queue_place place ON place.tenant_id = lease.tenant_id AND place.lease_id = lease.id
     GROUP BY coalesce(lease.id, place.lease_id), lease.id, lease.state
     HAVING lease.id IS NULL OR count(place.lease_id) = 0
     UNION ALL
     SELECT 'queue: pool ' || pool.id || ' counts ' || pool.waiting || ' waiters and has ' || count(place.lease_id)
     FROM worker_pool pool
     LEFT JOIN queue_place place ON place.pool_tenant_id = pool.tenant_id AND place.pool_id = pool.id
     GROUP BY pool.tenant_id, pool.id HAVING pool.waiting <> count(place.lease_id)
     UNION ALL
     SELECT 'queue: ' || flow.tenant_id || '/' || flow.project_id || ' in ' || flow.pool_id || ' counts '
       || flow.waiting || ' waiters and has ' || count(place.lease_id)
     FROM fair_share flow
     LEFT JOIN queue_place place ON place.pool_tenant_id = flow.pool_tenant_id AND place.pool_id = flow.pool_id
       AND place.tenant_id = flow.tenant_id AND flow.project_id IN ('', place.project_id)
     GROUP BY flow.pool_tenant_id, flow.pool_id, flow.tenant_id, flow.project_id, flow.waiting
     HAVING flow.waiting <> count(place.lease_id)
     UNION ALL
     SELECT 'queue: lease ' || lease_id || ' waits no more and has a selector' FROM waiter_selector selector
     WHERE NOT EXISTS (SELECT FROM capacity_lease lease WHERE lease.tenant_id = selector.tenant_id
       AND lease.id = selector.lease_id AND lease.state = 'WAITING')`,
  );
}

const COLUMNS = `id, state, tenant_id, project_id, pool_tenant_id, pool_id, fencing_token, granted_at, expires_at, ended_at,
  execution_seconds`;

/** I4, I5 and I13, over all that was ever written. */
export function brokenHistory(database: pg.Pool): Promise<string[]> {
  return found(
    database,
    "broken-history",
    `WITH lease AS (SELECT ${COLUMNS} FROM capacity_lease UNION ALL SELECT ${COLUMNS} FROM past_lease),
     history AS (
       SELECT aggregate_id,
         count(*) FILTER (WHERE to_state = 'ACTIVE') AS grants,
         count(*) FILTER (WHERE from_state = 'ACTIVE' AND to_state <> 'ACTIVE') AS ends,
         count(*) FILTER (WHERE to_state = 'CANCELLED') AS withdrawals
       FROM transition WHERE aggregate = 'CapacityLease' GROUP BY aggregate_id
     ), told AS (
       SELECT subject, count(*) FILTER (WHERE topic LIKE '%.capacity-lease-granted') AS granted,
         count(*) FILTER (WHERE topic LIKE '%.capacity-lease-released') AS released
       FROM outbox_message WHERE topic LIKE 'capacity.leases.%' GROUP BY subject
     ), owed AS (
       SELECT id::text, state, (fencing_token IS NOT NULL)::int AS granted,
         (state IN ('RELEASED', 'EXPIRED', 'REVOKED'))::int AS released, (state = 'CANCELLED')::int AS withdrawn
       FROM lease
     ), token AS (
       SELECT pool_tenant_id, pool_id, fencing_token, min(transition.id) AS first, transition.xmin::text AS committed
       FROM lease JOIN transition ON transition.aggregate = 'CapacityLease' AND to_state = 'ACTIVE'
         AND aggregate_id = lease.id::text
       GROUP BY pool_tenant_id, pool_id, fencing_token, transition.xmin::text
     ), granting AS (
       SELECT pool_tenant_id, pool_id, min(fencing_token) AS lowest, max(fencing_token) AS highest, min(first) AS first
       FROM token GROUP BY pool_tenant_id, pool_id, committed
     ), ordered AS (
       SELECT *, max(highest) OVER (PARTITION BY pool_tenant_id, pool_id ORDER BY first
         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
       FROM granting
     )
     SELECT 'I4: lease ' || coalesce(id, aggregate_id, subject) || ' is ' || coalesce(owed.state::text, 'nowhere')
       || ', with ' || coalesce(grants, 0) || ' grants, ' || coalesce(ends, 0) || ' ends, '
       || coalesce(told.granted, 0) || ' Granted and ' || coalesce(told.released, 0) || ' Released' AS wrong
     FROM owed FULL JOIN history ON aggregate_id = id FULL JOIN told ON subject = coalesce(id, aggregate_id)
     WHERE (coalesce(grants, 0), coalesce(ends, 0), coalesce(withdrawals, 0), coalesce(told.granted, 0),
       coalesce(told.released, 0)) IS DISTINCT FROM (owed.granted, owed.released, owed.withdrawn, owed.granted, owed.released)
     UNION ALL
     SELECT 'I5: token ' || fencing_token || ' of ' || pool_id || ' was given ' || count(*) || ' times'
     FROM lease WHERE fencing_token IS NOT NULL
     GROUP BY pool_tenant_id, pool_id, fencing_token HAVING count(*) > 1
     UNION ALL
     SELECT 'I5: in ' || pool_id || ' token ' || lowest || ' came after ' || before FROM ordered WHERE lowest <= before
     UNION ALL
     SELECT 'I13: lease ' || id || ' lasted ' || execution_seconds || ' s of ' || (expires_at - granted_at)
     FROM lease WHERE state IN ('RELEASED', 'EXPIRED', 'REVOKED') AND execution_seconds IS DISTINCT FROM
       greatest(0, floor(extract(epoch FROM least(ended_at, expires_at) - granted_at)))::bigint
     UNION ALL
     SELECT 'I13: ' || tenant_id || '/' || scope.project_id || ' used ' || scope.execution_seconds
       || ' s, its leases ' || coalesce(sum(lease.execution_seconds), 0)
     FROM scope_usage scope LEFT JOIN lease USING (tenant_id)
     WHERE lease.id IS NULL OR scope.project_id IN ('', lease.project_id)
     GROUP BY tenant_id, scope.project_id, scope.execution_seconds
     HAVING scope.execution_seconds <> coalesce(sum(lease.execution_seconds), 0)`,
  );
}

/** I10 and I12: what was due `slackSeconds` ago has ended. For when the deadlines have run. */
export function brokenDeadlines(database: pg.Pool, slackSeconds: number): Promise<string[]> {
  return found(
    database,
    "broken-deadlines",
    `SELECT 'I12: lease ' || id || ' is ' || state || ' and was due at ' || coalesce(expires_at, wait_deadline) AS wrong
     FROM capacity_lease, (SELECT clock_timestamp() - make_interval(secs => $1) AS due) AS passed
     WHERE (state = 'ACTIVE' AND expires_at < due) OR (state = 'WAITING' AND wait_deadline < due)
     UNION ALL
     SELECT 'I10: pool ' || id || ' is ' || state || ' and uses ' || used || ', its deadline was ' || drain_deadline
     FROM worker_pool, (SELECT clock_timestamp() - make_interval(secs => $1) AS due) AS passed
     WHERE (state = 'DRAINING' AND drain_deadline < due) OR (state IN ('DRAINED', 'RETIRED') AND used > 0)`,
    [slackSeconds],
  );
}

/** Once everybody has gone, nothing is left of them. */
export function leftOver(database: pg.Pool): Promise<string[]> {
  return found(
    database,
    "left-over",
    `SELECT 'left: pool ' || id || ' is ' || state || ', uses ' || used || ', has ' || waiting || ' waiters, contended ' || contended AS wrong
     FROM worker_pool WHERE used <> 0 OR waiting <> 0 OR contended
     UNION ALL
     SELECT 'left: lease ' || id || ' is ' || state FROM capacity_lease WHERE state IN ('WAITING', 'ACTIVE')
     UNION ALL
     SELECT 'left: a place of lease ' || lease_id || ' in ' || pool_id FROM queue_place
     UNION ALL
     SELECT 'left: ' || tenant_id || '/' || project_id || ' uses ' || used_runs || ' runs, ' || used_sandboxes || ' sandboxes'
     FROM scope_usage WHERE used_runs <> 0 OR used_sandboxes <> 0`,
  );
}
