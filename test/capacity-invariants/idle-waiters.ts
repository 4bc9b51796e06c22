import type pg from "pg";

/**
 * I8: while nothing is under way, no waiter could be granted. Works it out anew from the rows: each pool's queue is gone
 * through in its order, the tenants by virtual time, then the projects, then priority and arrival. Who is blocked by a
 * quota is passed over with its whole project or tenant; who waits for slots holds up all behind; and who wants more than
 * the pool, or the quota in its way, has at all is passed over alone, so it isn't even among them.
 */
export async function idleWaiters(database: pg.Pool): Promise<string[]> {
  const { rows } = await database.query<Waiter>({ name: "idle-waiters", text: WAITERS });
  return [...group(rows, ({ pool }) => pool).values()].flatMap((queue) => admissibleIn(queue) ?? []);
}

/** The first of the queue, if it should have been granted. Flows that stand equal may be served in either order. */
function admissibleIn(queue: readonly Waiter[]): string | undefined {
  // Who has waited too long is about to go, and whether it still stands before others isn't promised.
  if (queue.some(({ overdue }) => overdue)) return undefined;
  const tenants = group(queue, ({ tenant }) => tenant);
  for (let flows = [...tenants.values()]; flows.length > 0;) {
    const next = least(flows, ({ tenantTime }) => tenantTime);
    const heads = next.flatMap((flow) => headsOf(flow));
    if (heads.some(({ fits, tenantBlocked }) => !tenantBlocked && !fits)) return undefined;
    const granted = heads.find(({ tenantBlocked }) => !tenantBlocked);
    if (granted) return `I8: lease ${granted.lease} waits, and nothing is in its way in ${granted.pool}`;
    flows = flows.filter((flow) => !next.includes(flow));
  }
  return undefined;
}

/**
 * Whom a tenant may send next. If its own quota may block whoever's turn it is, before any quota of a project, only those
 * that would hold up everybody if it were theirs.
 */
function headsOf(flow: readonly Waiter[]): Waiter[] {
  const projects = [...group(flow, ({ project }) => project).values()];
  for (let left = projects.flatMap(([head]) => (head ? [[head]] : [])); left.length > 0;) {
    const next = least(left, ({ projectTime }) => projectTime);
    const heads = next.flat();
    const free = heads.filter(({ tenantBlocked, projectBlocked }) => !tenantBlocked && !projectBlocked);
    if (heads.some(({ tenantBlocked }) => tenantBlocked)) return free.filter(({ fits }) => !fits);
    if (free.length > 0) return free;
    left = left.filter((head) => !next.includes(head));
  }
  return [];
}

function least(flows: Waiter[][], time: (waiter: Waiter) => number): Waiter[][] {
  const timeOf = ([first]: readonly Waiter[]) => (first ? time(first) : Infinity);
  const earliest = Math.min(...flows.map(timeOf));
  return flows.filter((flow) => timeOf(flow) === earliest);
}

function group<Item>(items: readonly Item[], key: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const known = groups.get(key(item));
    if (known) known.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

interface Waiter {
  lease: string;
  pool: string;
  tenant: string;
  project: string;
  tenantTime: number;
  projectTime: number;
  overdue: boolean;
  fits: boolean;
  tenantBlocked: boolean;
  projectBlocked: boolean;
}

/** The queues of the pools that grant and have a slot free, in the order within a project. */
const WAITERS = `
  SELECT lease.id AS lease, pool.tenant_id || '/' || pool.id AS pool, lease.tenant_id AS tenant,
    lease.project_id AS project, tenant_flow.virtual_time AS "tenantTime", project_flow.virtual_time AS "projectTime",
    coalesce(lease.wait_deadline < clock_timestamp(), false) AS overdue,
    pool.used + lease.units <= pool.current_size AS fits,
    room."tenantBlocked", room."projectBlocked"
  FROM worker_pool pool
  JOIN queue_place place ON place.pool_tenant_id = pool.tenant_id AND place.pool_id = pool.id
  JOIN capacity_lease lease ON lease.tenant_id = place.tenant_id AND lease.id = place.lease_id AND lease.state = 'WAITING'
  JOIN fair_share tenant_flow ON tenant_flow.pool_tenant_id = pool.tenant_id AND tenant_flow.pool_id = pool.id
    AND tenant_flow.tenant_id = lease.tenant_id AND tenant_flow.project_id = ''
  JOIN fair_share project_flow ON project_flow.pool_tenant_id = pool.tenant_id AND project_flow.pool_id = pool.id
    AND project_flow.tenant_id = lease.tenant_id AND project_flow.project_id = lease.project_id
  LEFT JOIN scope_usage tenant_use ON tenant_use.tenant_id = lease.tenant_id AND tenant_use.project_id = ''
  LEFT JOIN scope_usage project_use ON project_use.tenant_id = lease.tenant_id AND project_use.project_id = lease.project_id
  LEFT JOIN quota tenant_quota ON tenant_quota.tenant_id = lease.tenant_id AND tenant_quota.project_id = ''
    AND tenant_quota.state = 'ACTIVE'
  LEFT JOIN quota project_quota ON project_quota.tenant_id = lease.tenant_id
    AND project_quota.project_id = lease.project_id AND project_quota.state = 'ACTIVE'
  CROSS JOIN LATERAL (SELECT
    CASE lease.resource WHEN 'RUNS' THEN tenant_quota.concurrent_runs ELSE tenant_quota.concurrent_sandboxes END,
    CASE lease.resource WHEN 'RUNS' THEN project_quota.concurrent_runs ELSE project_quota.concurrent_sandboxes END,
    CASE lease.resource WHEN 'RUNS' THEN tenant_use.used_runs ELSE tenant_use.used_sandboxes END,
    CASE lease.resource WHEN 'RUNS' THEN project_use.used_runs ELSE project_use.used_sandboxes END
  ) AS quota (of_tenant, of_project, used_by_tenant, used_by_project)
  CROSS JOIN LATERAL (SELECT
    coalesce(coalesce(used_by_tenant, 0) + lease.units > of_tenant, false) AS "tenantBlocked",
    coalesce(coalesce(used_by_project, 0) + lease.units > of_project, false) AS "projectBlocked"
  ) AS room
  WHERE pool.state = 'ACTIVE' AND pool.used < pool.current_size AND (pool.shared OR pool.tenant_id = lease.tenant_id)
    AND lease.units <= pool.current_size
    AND NOT CASE WHEN room."tenantBlocked" THEN lease.units > of_tenant
      WHEN room."projectBlocked" THEN lease.units > of_project ELSE false END
  ORDER BY place.priority DESC, place.arrival`;
