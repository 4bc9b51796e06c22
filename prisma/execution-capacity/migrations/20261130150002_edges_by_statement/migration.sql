-- DropForeignKey
ALTER TABLE "transition" DROP CONSTRAINT "transition_aggregate_from_state_event_to_state_fkey";

-- Lets only the machines' transitions into the history, as the foreign key did; but it looks once for a statement, not
-- for every row, and takes no lock on the edge, which no statement but a migration removes.
CREATE FUNCTION refuse_unknown_transitions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wrong record;
BEGIN
    SELECT aggregate, from_state, event, to_state INTO wrong
    FROM (SELECT DISTINCT aggregate, from_state, event, to_state FROM recorded) kind
    WHERE NOT EXISTS (
        SELECT FROM lifecycle_edge edge
        WHERE edge.aggregate = kind.aggregate AND edge.from_state = kind.from_state
            AND edge.event = kind.event AND edge.to_state = kind.to_state
    ) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% has no transition from % by % to %', wrong.aggregate, wrong.from_state, wrong.event, wrong.to_state
            USING ERRCODE = 'foreign_key_violation', TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER transition_is_an_edge
    AFTER INSERT ON "transition" REFERENCING NEW TABLE AS recorded
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unknown_transitions();
CREATE TRIGGER transition_stays_an_edge
    AFTER UPDATE ON "transition" REFERENCING NEW TABLE AS recorded
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unknown_transitions();

-- The same for the states of leases, which are written by the dozen.
CREATE FUNCTION refuse_unknown_edges() RETURNS trigger LANGUAGE plpgsql SET enable_hashjoin = on AS $$
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
            SELECT DISTINCT before.state::text AS origin, after.state::text AS state
            FROM after LEFT JOIN before ON before.tenant_id = after.tenant_id AND before.id = after.id
            WHERE before.state IS DISTINCT FROM after.state
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

DROP TRIGGER capacity_lease_created_along_an_edge ON "capacity_lease";
DROP TRIGGER capacity_lease_moves_along_an_edge ON "capacity_lease";
CREATE TRIGGER capacity_leases_created_along_an_edge
    AFTER INSERT ON "capacity_lease" REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unknown_edges('CapacityLease');
CREATE TRIGGER capacity_leases_move_along_an_edge
    AFTER UPDATE ON "capacity_lease" REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_unknown_edges('CapacityLease');
