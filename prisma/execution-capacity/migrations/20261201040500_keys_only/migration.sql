-- The most selective column comes first, so that nothing else is worth a look.
DROP INDEX "capacity_lease_one_per_holder";
-- CreateIndex
CREATE UNIQUE INDEX "capacity_lease_one_per_holder" ON "capacity_lease"("holder_id", "holder_kind", "tenant_id", "resource") WHERE ((state = 'WAITING') OR (state = 'ACTIVE'));

-- `capacity_open` as before, but that holders' leases are looked up by that key, whatever is known of the tables when it
-- is planned. The OFFSET, which spares none, keeps it from going through all that are open instead, and the tenant's
-- comparison, which no index serves, from going through all of the tenant's.
CREATE OR REPLACE FUNCTION capacity_open(
    lease_tenants text[], lease_ids uuid[],
    renewed_tenants text[], renewed_ids uuid[],
    named_tenants text[], named_pools text[],
    pool_tenants text[], pool_ids text[],
    scope_tenants text[], scope_projects text[],
    holder_tenants text[], holder_kinds text[], holder_ids text[],
    reaping bool
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    claimed pool_key[];
    locked pool_key[];
    claimed_tenants text[];
    locked_tenants text[];
    overdue uuid[];
    instant timestamptz;
    uncovered bool;
    answer json;
BEGIN
    -- All that follows in this transaction is a few rows by their keys. Planning it each time costs more than running it,
    -- and the tables may grow a thousandfold before anybody counts them.
    PERFORM set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
        set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true);

    claimed := ARRAY(
        SELECT (lease.pool_tenant_id, lease.pool_id)::pool_key
        FROM unnest(lease_tenants, lease_ids) AS wanted (tenant_id, id)
        JOIN capacity_lease lease ON lease.tenant_id = wanted.tenant_id AND lease.id = wanted.id
        UNION
        SELECT (place.pool_tenant_id, place.pool_id)::pool_key
        FROM unnest(lease_tenants, lease_ids) AS wanted (tenant_id, id)
        JOIN queue_place place ON place.tenant_id = wanted.tenant_id AND place.lease_id = wanted.id
        UNION
        SELECT (place.pool_tenant_id, place.pool_id)::pool_key
        FROM unnest(holder_tenants, holder_kinds, holder_ids) AS holder (tenant_id, kind, id)
        CROSS JOIN LATERAL (
            SELECT * FROM capacity_lease
            WHERE holder_id = holder.id AND holder_kind = holder.kind AND tenant_id || '' = holder.tenant_id
                AND (state = 'WAITING' OR state = 'ACTIVE')
            OFFSET 0
        ) lease
        LEFT JOIN queue_place waiting ON waiting.tenant_id = lease.tenant_id AND waiting.lease_id = lease.id
        CROSS JOIN LATERAL (VALUES
            (lease.pool_tenant_id, lease.pool_id), (waiting.pool_tenant_id, waiting.pool_id)
        ) AS place (pool_tenant_id, pool_id)
        WHERE place.pool_id IS NOT NULL
        UNION
        SELECT (tenant_id, id)::pool_key FROM unnest(pool_tenants, pool_ids) AS pool (tenant_id, id)
        UNION
        SELECT (pool.tenant_id, pool.id)::pool_key
        FROM (SELECT DISTINCT tenant_id, pool_id FROM unnest(named_tenants, named_pools) AS named (tenant_id, pool_id)) named
        CROSS JOIN LATERAL (
            SELECT own.tenant_id, own.id FROM worker_pool own
            WHERE own.tenant_id = named.tenant_id AND own.id = named.pool_id
            UNION ALL
            SELECT other.tenant_id, other.id FROM worker_pool other WHERE other.shared AND other.id = named.pool_id
            LIMIT 1
        ) pool (tenant_id, id)
    );
    claimed_tenants := ARRAY(
        SELECT unnest(scope_tenants) UNION SELECT unnest(lease_tenants) UNION SELECT unnest(holder_tenants));
    locked := capacity_pools_involved(claimed, claimed_tenants);
    PERFORM FROM worker_pool WHERE (tenant_id, id) IN (SELECT * FROM unnest(locked))
    ORDER BY tenant_id, id FOR NO KEY UPDATE;

    -- Whose time is over in these pools holds nobody else up; but for those who wait elsewhere, which isn't locked.
    overdue := ARRAY(
        SELECT lease.id FROM unnest(locked) AS pool
        CROSS JOIN LATERAL (
            SELECT tenant_id, id FROM capacity_lease
            WHERE reaping AND pool_tenant_id = pool.tenant_id AND pool_id = pool.id
                AND (state = 'WAITING' OR state = 'ACTIVE') AND due_at <= clock_timestamp() AND coalesce(expires_at, wait_deadline) <= clock_timestamp()
            ORDER BY due_at LIMIT 20
        ) lease
        WHERE NOT EXISTS (
            SELECT FROM fair_share flow
            WHERE flow.tenant_id = lease.tenant_id AND flow.waiting > 0
                AND (flow.pool_tenant_id, flow.pool_id) NOT IN (SELECT * FROM unnest(locked))
        )
    );
    locked_tenants := ARRAY(
        SELECT unnest(claimed_tenants)
        UNION
        SELECT flow.tenant_id FROM unnest(locked) AS pool
        JOIN fair_share flow ON flow.pool_tenant_id = pool.tenant_id AND flow.pool_id = pool.id
        WHERE flow.project_id = '' AND flow.waiting > 0
        UNION
        SELECT lease.tenant_id FROM unnest(locked) AS pool
        JOIN capacity_lease lease ON lease.pool_tenant_id = pool.tenant_id AND lease.pool_id = pool.id
            AND (state = 'WAITING' OR state = 'ACTIVE')
        WHERE overdue <> '{}' AND lease.id = ANY (overdue) AND lease.due_at <= clock_timestamp()
    );
    INSERT INTO scope_usage (tenant_id, project_id)
    SELECT tenant_id, project_id FROM (
        SELECT * FROM unnest(scope_tenants, scope_projects)
        UNION SELECT tenant_id, '' FROM unnest(locked_tenants) AS tenant (tenant_id)
    ) scope (tenant_id, project_id)
    WHERE NOT EXISTS (
        SELECT FROM scope_usage known WHERE known.tenant_id = scope.tenant_id AND known.project_id = scope.project_id)
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;
    PERFORM FROM scope_usage WHERE tenant_id = ANY (locked_tenants) AND project_id = ''
    ORDER BY tenant_id FOR NO KEY UPDATE;

    -- Until their tenants were locked, one of them may have come to wait where nothing is locked.
    IF overdue <> '{}' THEN
        overdue := ARRAY(
            SELECT lease.id FROM unnest(locked) AS pool
            JOIN capacity_lease lease ON lease.pool_tenant_id = pool.tenant_id AND lease.pool_id = pool.id
                AND (state = 'WAITING' OR state = 'ACTIVE') AND lease.due_at <= clock_timestamp()
            WHERE lease.id = ANY (overdue) AND NOT EXISTS (
                SELECT FROM fair_share flow
                WHERE flow.tenant_id = lease.tenant_id AND flow.waiting > 0
                    AND (flow.pool_tenant_id, flow.pool_id) NOT IN (SELECT * FROM unnest(locked))
            )
        );
    END IF;

    instant := date_trunc('milliseconds', clock_timestamp());
    -- A lease may come more than once.
    WITH lease AS (
        SELECT lease.* FROM unnest(lease_tenants, lease_ids) AS wanted (tenant_id, id)
        JOIN capacity_lease lease ON lease.tenant_id = wanted.tenant_id AND lease.id = wanted.id
        UNION ALL
        SELECT lease.* FROM unnest(holder_tenants, holder_kinds, holder_ids) AS holder (tenant_id, kind, id)
        CROSS JOIN LATERAL (
            SELECT * FROM capacity_lease
            WHERE holder_id = holder.id AND holder_kind = holder.kind AND tenant_id || '' = holder.tenant_id
                AND (state = 'WAITING' OR state = 'ACTIVE')
            OFFSET 0
        ) lease
        UNION ALL
        SELECT lease.* FROM unnest(locked) AS pool
        JOIN capacity_lease lease ON lease.pool_tenant_id = pool.tenant_id AND lease.pool_id = pool.id
            AND (state = 'WAITING' OR state = 'ACTIVE')
        WHERE overdue <> '{}' AND lease.id = ANY (overdue) AND lease.due_at <= instant
    ), place AS (
        SELECT DISTINCT place.* FROM lease JOIN queue_place place ON place.tenant_id = lease.tenant_id AND place.lease_id = lease.id
        WHERE lease.state = 'WAITING'
    ), charged AS (
        SELECT * FROM unnest(scope_tenants, scope_projects) AS scope (tenant_id, project_id)
        UNION SELECT tenant_id, project_id FROM lease
    )
    SELECT NOT (locked @> capacity_pools_involved(claimed, claimed_tenants))
        OR EXISTS (SELECT FROM lease WHERE (state = 'WAITING' OR state = 'ACTIVE')
            AND NOT (pool_tenant_id, pool_id)::pool_key = ANY (locked))
        OR EXISTS (SELECT FROM place WHERE NOT (pool_tenant_id, pool_id)::pool_key = ANY (locked)),
    json_build_object(
        'now', instant,
        'pools', (
            SELECT json_agg(pool) FROM worker_pool pool WHERE (tenant_id, id) IN (SELECT * FROM unnest(locked))),
        'leases', (SELECT json_agg(lease) FROM lease),
        'overdue', overdue,
        'renewed', (
            SELECT json_agg(json_build_object('lease', lease, 'drain_deadline',
                CASE pool.state WHEN 'DRAINING' THEN pool.drain_deadline END))
            FROM unnest(renewed_tenants, renewed_ids) AS wanted (tenant_id, id)
            JOIN capacity_lease lease ON lease.tenant_id = wanted.tenant_id AND lease.id = wanted.id
            JOIN worker_pool pool ON pool.tenant_id = lease.pool_tenant_id AND pool.id = lease.pool_id),
        'scopes', (
            SELECT json_agg(json_build_object('usage', usage, 'quota', quota))
            FROM (SELECT * FROM charged UNION SELECT tenant_id, '' FROM charged) scope
            JOIN scope_usage usage ON usage.tenant_id = scope.tenant_id AND usage.project_id = scope.project_id
            LEFT JOIN quota ON quota.tenant_id = scope.tenant_id AND quota.project_id = scope.project_id
                AND quota.state = 'ACTIVE'),
        'flows', (
            SELECT json_agg(flow) FROM unnest(locked) AS pool
            JOIN (SELECT * FROM charged UNION SELECT tenant_id, '' FROM charged) scope ON true
            JOIN fair_share flow ON flow.pool_tenant_id = pool.tenant_id AND flow.pool_id = pool.id
                AND flow.tenant_id = scope.tenant_id AND flow.project_id = scope.project_id),
        'ended', (
            SELECT json_agg(ended) FROM unnest(holder_tenants, holder_kinds, holder_ids) AS holder (tenant_id, kind, id)
            JOIN ended_holder ended ON ended.tenant_id = holder.tenant_id AND ended.holder_kind = holder.kind
                AND ended.holder_id = holder.id),
        'places', (SELECT json_agg(place) FROM place)
    ) INTO uncovered, answer;
    IF uncovered THEN
        RAISE EXCEPTION 'somebody came to hold or to wait in another pool meanwhile'
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN answer;
END $$;

-- Rows before and after a statement are joined by hashing: in pairs, hundreds of them take longer than their update.
ALTER FUNCTION refuse_unknown_edges() SET enable_nestloop = off;
