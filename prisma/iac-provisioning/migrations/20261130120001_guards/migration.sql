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

CREATE TRIGGER specification_created_along_an_edge
    BEFORE INSERT ON "specification"
    FOR EACH ROW EXECUTE FUNCTION refuse_unknown_edge('DeploymentSpecification');
CREATE TRIGGER specification_moves_along_an_edge
    BEFORE UPDATE OF state ON "specification"
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION refuse_unknown_edge('DeploymentSpecification');

CREATE TRIGGER provisioning_run_created_along_an_edge
    BEFORE INSERT ON "provisioning_run"
    FOR EACH ROW EXECUTE FUNCTION refuse_unknown_edge('ProvisioningRun');
CREATE TRIGGER provisioning_run_moves_along_an_edge
    BEFORE UPDATE OF state ON "provisioning_run"
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION refuse_unknown_edge('ProvisioningRun');
