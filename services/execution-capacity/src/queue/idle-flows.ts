import type pg from "pg";

/** Rows of one statement. */
const BATCH = 1_000;

/**
 * Removes the flows of fair queues in which nobody waits and which are owed nothing: those whose virtual time lies behind
 * what new ones begin with. Of a tenant whose flow is such a one its projects go too: when they come back, all of them
 * begin alike. Answers how many.
 */
export async function removeIdleFlows(pool: pg.Pool, signal: AbortSignal): Promise<number> {
  const { rows: queues } = await pool.query<Queue>(
    `SELECT DISTINCT share.pool_tenant_id AS "tenantId", share.pool_id AS "poolId"
     FROM fair_share share JOIN worker_pool pool ON pool.tenant_id = share.pool_tenant_id AND pool.id = share.pool_id
     WHERE share.waiting = 0 AND (share.project_id > '' OR share.virtual_time <= pool.virtual_time)`,
  );
  let removed = 0;
  for (const queue of queues) {
    if (signal.aborted) break;
    removed += await removeFrom(pool, queue);
  }
  return removed;
}

interface Queue {
  tenantId: string;
  poolId: string;
}

/** A batch of one queue, under its pool's lock: whoever joins the queue holds it too. */
async function removeFrom(pool: pg.Pool, { tenantId, poolId }: Queue): Promise<number> {
  const connection = await pool.connect();
  try {
    await connection.query("BEGIN");
    const lock = "SELECT FROM worker_pool WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE";
    await connection.query(lock, [tenantId, poolId]);
    const projects = await connection.query(REMOVE_PROJECTS, [tenantId, poolId, BATCH]);
    const tenants = await connection.query(REMOVE_TENANTS, [tenantId, poolId, BATCH]);
    await connection.query("COMMIT");
    return (projects.rowCount ?? 0) + (tenants.rowCount ?? 0);
  } catch (error) {
    await connection.query("ROLLBACK").catch(() => undefined);
    throw error;
  } finally {
    connection.release();
  }
}

/** A project's virtual time counts against its tenant's inner one, a tenant's against the pool's. */
const REMOVE_PROJECTS = `
  DELETE FROM fair_share WHERE (pool_tenant_id, pool_id, tenant_id, project_id) IN (
    SELECT project.pool_tenant_id, project.pool_id, project.tenant_id, project.project_id
    FROM worker_pool pool
    JOIN fair_share tenant
      ON tenant.pool_tenant_id = pool.tenant_id AND tenant.pool_id = pool.id AND tenant.project_id = ''
    JOIN fair_share project
      ON project.pool_tenant_id = pool.tenant_id AND project.pool_id = pool.id
      AND project.tenant_id = tenant.tenant_id AND project.project_id > ''
    WHERE pool.tenant_id = $1 AND pool.id = $2 AND project.waiting = 0 AND (
      project.virtual_time <= tenant.inner_time OR (tenant.waiting = 0 AND tenant.virtual_time <= pool.virtual_time)
    )
    LIMIT $3
  )`;

const REMOVE_TENANTS = `
  DELETE FROM fair_share WHERE (pool_tenant_id, pool_id, tenant_id, project_id) IN (
    SELECT tenant.pool_tenant_id, tenant.pool_id, tenant.tenant_id, tenant.project_id
    FROM worker_pool pool
    JOIN fair_share tenant
      ON tenant.pool_tenant_id = pool.tenant_id AND tenant.pool_id = pool.id AND tenant.project_id = ''
    WHERE pool.tenant_id = $1 AND pool.id = $2 AND tenant.waiting = 0 AND tenant.virtual_time <= pool.virtual_time
      AND NOT EXISTS (
        SELECT FROM fair_share project
        WHERE project.pool_tenant_id = tenant.pool_tenant_id AND project.pool_id = tenant.pool_id
          AND project.tenant_id = tenant.tenant_id AND project.project_id > ''
      )
    LIMIT $3
  )`;
