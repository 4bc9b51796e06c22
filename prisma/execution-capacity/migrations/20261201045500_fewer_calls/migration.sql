-- A statement that counts a row's revision itself needs no call to have it counted.
DROP TRIGGER worker_pool_revision ON "worker_pool";
CREATE TRIGGER worker_pool_revision BEFORE UPDATE ON "worker_pool"
    FOR EACH ROW WHEN (NEW.revision = OLD.revision) EXECUTE FUNCTION count_revision();
DROP TRIGGER scope_usage_revision ON "scope_usage";
CREATE TRIGGER scope_usage_revision BEFORE UPDATE ON "scope_usage"
    FOR EACH ROW WHEN (NEW.revision = OLD.revision) EXECUTE FUNCTION count_revision();

-- As before, but that a row before and after the statement are brought together by sorting: whatever joins are allowed
-- where it is called, hundreds of rows take no longer than they must.
CREATE OR REPLACE FUNCTION refuse_unknown_edges() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wrong record;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT '[*]' AS origin, state INTO wrong FROM (SELECT DISTINCT state::text AS state FROM added) added
        WHERE NOT EXISTS (
            SELECT FROM lifecycle_edge
            WHERE aggregate = TG_ARGV[0] AND from_state = '[*]' AND to_state = added.state
        ) LIMIT 1;
    ELSE
        SELECT origin, state INTO wrong
        FROM (
            SELECT DISTINCT origin, state
            FROM (
                SELECT moment, state, lag(state) OVER (PARTITION BY tenant_id, id ORDER BY moment) AS origin
                FROM (
                    SELECT 0 AS moment, tenant_id, id, state::text AS state FROM before
                    UNION ALL SELECT 1, tenant_id, id, state::text FROM after
                ) image
            ) row
            WHERE moment = 1 AND origin IS DISTINCT FROM state
        ) moved
        WHERE NOT EXISTS (
            SELECT FROM lifecycle_edge
            WHERE aggregate = TG_ARGV[0] AND from_state = moved.origin AND to_state = moved.state
        ) LIMIT 1;
    END IF;
    IF FOUND THEN
        RAISE EXCEPTION '% has no transition from % to %', TG_ARGV[0], wrong.origin, wrong.state
            USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;
