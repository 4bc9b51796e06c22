import type { WorkerPool } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

/** Who would come into a pool's queue. */
export interface Newcomer {
  tenantId: string;
  projectId: string;
  priority: number;
  /** Its tenant's share against the other tenants. */
  tenantWeight: number;
  /** Its project's share against the tenant's other projects. */
  projectWeight: number;
}

/**
 * The place that a newcomer would have in a pool's queue, if everybody's requests were of one size and no quota held
 * anybody up; 1 is next. The queue serves the tenant with the least virtual time, of its projects likewise, and there by
 * priority, then arrival.
 */
export async function positionFor(tx: Tx, pool: WorkerPool, newcomer: Newcomer): Promise<number> {
  if (pool.waiting === 0) return 1;
  const { tenantId, projectId, priority, tenantWeight, projectWeight } = newcomer;
  const flows = await flowsOf(tx, pool, newcomer);
  const ofTenant = flows.filter((flow) => flow.tenantId === tenantId);
  const tenant = ofTenant.find((flow) => flow.projectId === "");
  const project = ofTenant.find((flow) => flow.projectId === projectId);

  const place = { poolTenantId: pool.tenantId, poolId: pool.id, tenantId, projectId };
  const inProject = await tx.queuePlace.count({ where: { ...place, priority: { gte: priority } } });
  const otherProjects = ofTenant.filter((flow) => flow !== tenant && flow !== project);
  const projectStart = startOf(project, tenant?.innerTime ?? 0) + inProject / projectWeight;
  const inTenant = inProject + servedBefore(projectStart, otherProjects);

  const otherTenants = flows.filter((flow) => flow.tenantId !== tenantId);
  const tenantStart = startOf(tenant, pool.virtualTime) + inTenant / tenantWeight;
  return 1 + inTenant + servedBefore(tenantStart, otherTenants);
}

interface WaitingFlow {
  tenantId: string;
  projectId: string;
  waiting: number;
  virtualTime: number;
  innerTime: number;
  weight: number;
}

/** The tenants that wait, and the newcomer's own and its tenant's projects. */
function flowsOf(tx: Tx, pool: WorkerPool, { tenantId, projectId }: Newcomer): Promise<WaitingFlow[]> {
  return tx.$queryRaw<WaitingFlow[]>`
    SELECT flow.tenant_id AS "tenantId", flow.project_id AS "projectId", flow.waiting,
      flow.virtual_time AS "virtualTime", flow.inner_time AS "innerTime", coalesce(quota.weight, 1) AS weight
    FROM fair_share flow
    LEFT JOIN quota ON quota.tenant_id = flow.tenant_id AND quota.project_id = flow.project_id
      AND quota.state = 'ACTIVE'
    WHERE flow.pool_tenant_id = ${pool.tenantId} AND flow.pool_id = ${pool.id} AND (
      (flow.waiting > 0 AND (flow.project_id = '' OR flow.tenant_id = ${tenantId}))
      OR (flow.tenant_id = ${tenantId} AND flow.project_id IN ('', ${projectId}))
    )`;
}

/** A flow in which nobody waits takes up where its queue is. */
function startOf(flow: WaitingFlow | undefined, queueTime: number): number {
  return flow && flow.waiting > 0 ? flow.virtualTime : Math.max(flow?.virtualTime ?? 0, queueTime);
}

/** How many waiters of these flows are served before virtual time comes to `start`. */
function servedBefore(start: number, flows: readonly WaitingFlow[]): number {
  const turns = flows.map(({ virtualTime, weight, waiting }) =>
    Math.min(waiting, Math.max(0, Math.ceil((start - virtualTime) * weight))),
  );
  return turns.reduce((sum, served) => sum + served, 0);
}
