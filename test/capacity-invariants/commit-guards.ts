import type pg from "pg";

/**
 * Makes the database itself look at each commit, for I1, I2, I9, I10 and for who may not be overtaken: triggers that run
 * as the transaction ends, with what it leaves. They tell by a warning, which reaches the service's connection and no caller: see `hearGuards`.
 */
export async function installCommitGuards(database: pg.Pool): Promise<void> {
  await database.query(GUARDS);
}

/** Tells of every broken promise that a guard finds in what goes through the pool. */
export function hearGuards(pool: pg.Pool, tell: (broken: string) => void): void {
  pool.on("connect", (connection) =>
    connection.on("notice", ({ message = "" }) => {
      if (message.startsWith(BROKEN)) tell(message.slice(BROKEN.length));
    }),
  );
}

const BROKEN = "INVARIANT ";

/** As a transaction ends each of its pools and scopes is looked at once, however many leases it moved. */
const GUARDS = `
  CREATE FUNCTION guard_once(subject text) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE seen text := coalesce(current_setting('guard.seen', true), '');
  BEGIN
    IF position(subject || ';' IN seen) > 0 THEN RETURN false; END IF;
    PERFORM set_config('guard.seen', seen || subject || ';', true);
    RETURN true;
  END $$;

  CREATE FUNCTION guard_pool(tenant text, pool text) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE counted int; held int;
  BEGIN
    IF NOT guard_once('pool ' || tenant || '/' || pool) THEN RETURN; END IF;
    SELECT used INTO counted FROM worker_pool WHERE tenant_id = tenant AND id = pool;
    SELECT coalesce(sum(units), 0) INTO held FROM capacity_lease
    WHERE pool_tenant_id = tenant AND pool_id = pool AND state = 'ACTIVE';
    IF counted IS DISTINCT FROM held THEN
      RAISE WARNING 'INVARIANT I1: pool %/% counts %, its leases hold %', tenant, pool, counted, held;
    END IF;
  END $$;

  CREATE FUNCTION guard_scope(tenant text, project text) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE counted_runs int; counted_sandboxes int; held_runs int; held_sandboxes int;
  BEGIN
    IF NOT guard_once('scope ' || tenant || '/' || project) THEN RETURN; END IF;
    SELECT coalesce(max(used_runs), 0), coalesce(max(used_sandboxes), 0) INTO counted_runs, counted_sandboxes
    FROM scope_usage WHERE tenant_id = tenant AND project_id = project;
    SELECT coalesce(sum(units) FILTER (WHERE resource = 'RUNS'), 0),
      coalesce(sum(units) FILTER (WHERE resource = 'SANDBOXES'), 0) INTO held_runs, held_sandboxes
    FROM capacity_lease WHERE tenant_id = tenant AND project IN ('', project_id) AND state = 'ACTIVE';
    IF (counted_runs, counted_sandboxes) IS DISTINCT FROM (held_runs, held_sandboxes) THEN
      RAISE WARNING 'INVARIANT I1: scope %/% counts % runs and % sandboxes, its leases hold % and %',
        tenant, project, counted_runs, counted_sandboxes, held_runs, held_sandboxes;
    END IF;
  END $$;

  CREATE FUNCTION guard_pool_row() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM guard_pool(NEW.tenant_id, NEW.id);
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER guard_pool AFTER UPDATE OF used ON worker_pool
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.used <> NEW.used) EXECUTE FUNCTION guard_pool_row();

  CREATE FUNCTION guard_scope_row() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM guard_scope(NEW.tenant_id, NEW.project_id);
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER guard_scope AFTER INSERT OR UPDATE ON scope_usage
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION guard_scope_row();

  CREATE FUNCTION guard_charged() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM guard_pool(NEW.pool_tenant_id, NEW.pool_id);
    PERFORM guard_scope(NEW.tenant_id, '');
    PERFORM guard_scope(NEW.tenant_id, NEW.project_id);
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER guard_ended AFTER UPDATE ON capacity_lease DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.state = 'ACTIVE' AND NEW.state <> 'ACTIVE') EXECUTE FUNCTION guard_charged();

  -- Whether newcomers had to queue as the transaction began: what its first change found.
  CREATE FUNCTION guard_contended() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE subject text;
  BEGIN
    IF TG_TABLE_NAME = 'worker_pool' THEN subject := OLD.tenant_id || '/' || OLD.id;
    ELSE subject := OLD.pool_tenant_id || '/' || OLD.pool_id || '/' || OLD.tenant_id; END IF;
    IF guard_once('contended ' || subject) THEN
      PERFORM guard_once('began ' || subject || CASE WHEN OLD.contended THEN ' contended' ELSE ' open' END);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER guard_contended AFTER UPDATE ON worker_pool FOR EACH ROW
    WHEN (OLD.contended <> NEW.contended) EXECUTE FUNCTION guard_contended();
  CREATE TRIGGER guard_contended AFTER UPDATE ON fair_share FOR EACH ROW
    WHEN (NEW.project_id = '' AND OLD.contended <> NEW.contended) EXECUTE FUNCTION guard_contended();
  CREATE FUNCTION guard_began_contended(subject text, contended boolean) RETURNS boolean LANGUAGE sql AS $$
    SELECT CASE WHEN position('began ' || subject || ' contended;' IN seen) > 0 THEN true
      WHEN position('began ' || subject || ' open;' IN seen) > 0 THEN false ELSE contended END
    FROM coalesce(current_setting('guard.seen', true), '') AS seen
  $$;

  CREATE FUNCTION guard_overtaken(lease capacity_lease, pool worker_pool) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE place text := lease.pool_tenant_id || '/' || lease.pool_id; first uuid;
  BEGIN
    IF guard_began_contended(place, pool.contended) THEN
      RAISE WARNING 'INVARIANT queue: lease % was granted at once in pool %, where somebody waits for slots', lease.id, pool.id;
    END IF;
    SELECT lease_id INTO first FROM queue_place waiter
    WHERE waiter.pool_tenant_id = lease.pool_tenant_id AND waiter.pool_id = lease.pool_id
      AND waiter.tenant_id = lease.tenant_id AND waiter.project_id = lease.project_id
      -- It had its place before: one of the same transaction may have come later.
      AND waiter.xmin::text <> pg_current_xact_id()::xid::text LIMIT 1;
    IF FOUND THEN
      RAISE WARNING 'INVARIANT queue: lease % was granted at once, before % of its own project', lease.id, first;
    END IF;
    IF EXISTS (SELECT FROM fair_share flow
      WHERE flow.pool_tenant_id = lease.pool_tenant_id AND flow.pool_id = lease.pool_id
        AND flow.tenant_id = lease.tenant_id AND flow.project_id = ''
        AND guard_began_contended(place || '/' || lease.tenant_id, flow.contended)
        -- Those who have left by now held up as long as they were there.
        AND EXISTS (SELECT FROM queue_place waiter
          WHERE waiter.pool_tenant_id = flow.pool_tenant_id AND waiter.pool_id = flow.pool_id
            AND waiter.tenant_id = flow.tenant_id AND waiter.xmin::text <> pg_current_xact_id()::xid::text)) THEN
      RAISE WARNING 'INVARIANT queue: lease % was granted at once, and its tenant waits for its quota in pool %', lease.id, pool.id;
    END IF;
  END $$;

  CREATE FUNCTION guard_granted() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE pool worker_pool; held int; allowed int; scope text; kind text := TG_OP || ' ' || NEW.resource;
  BEGIN
    IF NOT guard_once(concat_ws('/', kind, NEW.pool_tenant_id, NEW.pool_id, NEW.tenant_id, NEW.project_id)) THEN
      RETURN NULL;
    END IF;
    PERFORM guard_pool(NEW.pool_tenant_id, NEW.pool_id);
    SELECT * INTO pool FROM worker_pool WHERE tenant_id = NEW.pool_tenant_id AND id = NEW.pool_id;
    IF pool.state <> 'ACTIVE' THEN
      RAISE WARNING 'INVARIANT I10: lease % was granted in pool %, which is %', NEW.id, pool.id, pool.state;
    END IF;
    IF pool.used > pool.current_size THEN
      RAISE WARNING 'INVARIANT I2: lease % was granted in pool %, which uses % of %',
        NEW.id, pool.id, pool.used, pool.current_size;
    END IF;
    FOREACH scope IN ARRAY ARRAY['', NEW.project_id] LOOP
      PERFORM guard_scope(NEW.tenant_id, scope);
      SELECT CASE NEW.resource WHEN 'RUNS' THEN used_runs ELSE used_sandboxes END INTO held
      FROM scope_usage WHERE tenant_id = NEW.tenant_id AND project_id = scope;
      SELECT CASE NEW.resource WHEN 'RUNS' THEN concurrent_runs ELSE concurrent_sandboxes END INTO allowed
      FROM quota WHERE tenant_id = NEW.tenant_id AND project_id = scope AND state = 'ACTIVE';
      IF FOUND AND held > allowed THEN
        RAISE WARNING 'INVARIANT I2: lease % was granted to %/%, which uses % % of %',
          NEW.id, NEW.tenant_id, scope, held, NEW.resource, allowed;
      END IF;
    END LOOP;
    IF TG_OP = 'INSERT' THEN PERFORM guard_overtaken(NEW, pool); END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER guard_granted_waiter AFTER UPDATE ON capacity_lease DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.state <> 'ACTIVE' AND NEW.state = 'ACTIVE') EXECUTE FUNCTION guard_granted();
  CREATE CONSTRAINT TRIGGER guard_granted_at_once AFTER INSERT ON capacity_lease DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.state = 'ACTIVE') EXECUTE FUNCTION guard_granted();

  CREATE FUNCTION guard_renewed() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE pool worker_pool;
  BEGIN
    -- What is due in these runs is so by far more than a decision takes.
    IF OLD.expires_at < clock_timestamp() - interval '30 s' THEN
      RAISE WARNING 'INVARIANT I9: lease % was renewed after its expiry at %', OLD.id, OLD.expires_at;
    END IF;
    SELECT * INTO pool FROM worker_pool WHERE tenant_id = NEW.pool_tenant_id AND id = NEW.pool_id;
    IF pool.state = 'DRAINING' AND NEW.expires_at > pool.drain_deadline THEN
      RAISE WARNING 'INVARIANT I10: lease % was renewed beyond the drain deadline of pool %', OLD.id, pool.id;
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER guard_renewed AFTER UPDATE ON capacity_lease DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.state = 'ACTIVE' AND NEW.state = 'ACTIVE' AND NEW.expires_at > OLD.expires_at)
    EXECUTE FUNCTION guard_renewed();

  CREATE FUNCTION guard_final() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE WARNING 'INVARIANT I4: lease % is % and became %', OLD.id, OLD.state, NEW.state;
    RETURN NULL;
  END $$;
  CREATE TRIGGER guard_final AFTER UPDATE ON capacity_lease FOR EACH ROW
    WHEN (OLD.state NOT IN ('WAITING', 'ACTIVE')) EXECUTE FUNCTION guard_final();
`;
