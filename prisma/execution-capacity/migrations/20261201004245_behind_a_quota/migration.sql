-- CreateIndex
CREATE INDEX "worker_pool_contended" ON "worker_pool"("tenant_id", "id") WHERE (contended);

-- As before, and the pools where those that a grant reaches hold up others because it is too full for them: once a quota
-- blocks them as well, those behind have their turn. They are few: most that wait want no more than the next free slot.
CREATE OR REPLACE FUNCTION capacity_pools_involved(claimed pool_key[], tenants text[]) RETURNS pool_key[]
LANGUAGE plpgsql AS $$
DECLARE
    reached pool_key[];
    further pool_key[];
BEGIN
    reached := claimed || ARRAY(
        SELECT DISTINCT (pool_tenant_id, pool_id)::pool_key FROM fair_share
        WHERE tenant_id = ANY (tenants) AND waiting > 0 AND project_id = ''
            AND NOT (pool_tenant_id, pool_id)::pool_key = ANY (claimed));
    IF EXISTS (
        SELECT FROM worker_pool WHERE (tenant_id, id) IN (SELECT * FROM unnest(reached)) AND selecting > 0
    ) THEN
        reached := reached || ARRAY(
            SELECT (tenant_id, id)::pool_key FROM worker_pool
            WHERE selecting > 0 AND NOT (tenant_id, id)::pool_key = ANY (reached));
    END IF;
    LOOP
        further := ARRAY(
            SELECT (held.tenant_id, held.id)::pool_key FROM worker_pool held
            WHERE held.contended AND held.used < held.current_size AND held.state = 'ACTIVE'
                AND NOT (held.tenant_id, held.id)::pool_key = ANY (reached)
                AND EXISTS (
                    SELECT FROM fair_share there
                    JOIN fair_share here ON here.tenant_id = there.tenant_id AND here.project_id = '' AND here.waiting > 0
                    WHERE there.pool_tenant_id = held.tenant_id AND there.pool_id = held.id
                        AND there.project_id = '' AND there.waiting > 0
                        AND (here.pool_tenant_id, here.pool_id)::pool_key = ANY (reached)));
        EXIT WHEN further = '{}';
        reached := reached || further;
    END LOOP;
    RETURN reached;
END $$;
