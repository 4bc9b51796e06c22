-- Wakes the relay. A hint: the relay polls as well.
CREATE FUNCTION notify_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM added) THEN
        PERFORM pg_notify('outbox', '');
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER notify_outbox
    AFTER INSERT ON "outbox_message"
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION notify_outbox();

-- Lets a row's state move only along the edges of its machine, whoever moves it.
CREATE FUNCTION refuse_unknown_edge() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    origin text := '[*]';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        origin := OLD.state::text;
    END IF;
    IF NOT EXISTS (
        SELECT FROM lifecycle_edge
        WHERE aggregate = TG_ARGV[0] AND from_state = origin AND to_state = NEW.state::text
    ) THEN
        RAISE EXCEPTION '% has no transition from % to %', TG_ARGV[0], origin, NEW.state
            USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER worker_pool_created_along_an_edge
    BEFORE INSERT ON "worker_pool"
    FOR EACH ROW EXECUTE FUNCTION refuse_unknown_edge('WorkerPool');
CREATE TRIGGER worker_pool_moves_along_an_edge
    BEFORE UPDATE OF state ON "worker_pool"
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION refuse_unknown_edge('WorkerPool');

CREATE TRIGGER quota_created_along_an_edge
    BEFORE INSERT ON "quota"
    FOR EACH ROW EXECUTE FUNCTION refuse_unknown_edge('Quota');
CREATE TRIGGER quota_moves_along_an_edge
    BEFORE UPDATE OF state ON "quota"
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION refuse_unknown_edge('Quota');

CREATE TRIGGER capacity_lease_created_along_an_edge
    BEFORE INSERT ON "capacity_lease"
    FOR EACH ROW EXECUTE FUNCTION refuse_unknown_edge('CapacityLease');
CREATE TRIGGER capacity_lease_moves_along_an_edge
    BEFORE UPDATE OF state ON "capacity_lease"
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION refuse_unknown_edge('CapacityLease');

-- Counters of what is leased never go below nothing, and an ACTIVE lease always has its token and its instants.
ALTER TABLE "worker_pool" ADD CONSTRAINT worker_pool_used_not_negative CHECK (used >= 0);
ALTER TABLE "scope_usage" ADD CONSTRAINT scope_usage_not_negative CHECK (used_runs >= 0 AND used_sandboxes >= 0);
ALTER TABLE "capacity_lease" ADD CONSTRAINT capacity_lease_granted_until
    CHECK (state <> 'ACTIVE' OR (fencing_token IS NOT NULL AND granted_at IS NOT NULL AND expires_at IS NOT NULL));
