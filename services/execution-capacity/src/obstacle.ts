import type { CapacityLease, Quota, ScopeUsage, WaitReason, WorkerPool } from "../generated/prisma/client.ts";
import { dimensionOf } from "./charge.ts";

/** What keeps a lease from being granted. */
export interface Obstacle {
  reason: WaitReason;
  /** Whose limit it is, for example `project:p1`. */
  subject: string;
  /** The quota that is reached, and which of its limits, as in `concurrentRuns=2`. */
  quota?: { row: Quota; limit: string };
  description: string;
}

/** The quotas in force and the use of a tenant and, perhaps among others, of its projects. */
export interface Scopes {
  quotas: readonly Quota[];
  usages: readonly ScopeUsage[];
}

export type Wanted = Pick<CapacityLease, "tenantId" | "projectId" | "units">;

/** Why the pool can't grant what is wanted now, the holder's own limits before the pool's; undefined when it can. */
export function obstacleTo(wanted: Wanted, pool: WorkerPool, scopes: Scopes): Obstacle | undefined {
  if (!accepts(pool, wanted.tenantId)) {
    return {
      reason: "POOL_NOT_ACCEPTING",
      subject: `pool:${pool.id}`,
      description: `pool ${pool.id} is ${pool.state} and grants nothing to this tenant now`,
    };
  }
  return (
    quotaObstacle("TENANT_QUOTA", "", wanted, pool, scopes) ??
    quotaObstacle("PROJECT_QUOTA", wanted.projectId, wanted, pool, scopes) ??
    sizeObstacle(wanted, pool)
  );
}

function accepts({ state, tenantId, shared }: WorkerPool, forTenant: string): boolean {
  return state === "ACTIVE" && (shared || tenantId === forTenant);
}

function quotaObstacle(
  reason: "TENANT_QUOTA" | "PROJECT_QUOTA",
  projectId: string,
  { tenantId, units }: Wanted,
  pool: WorkerPool,
  { quotas, usages }: Scopes,
): Obstacle | undefined {
  const ofScope = (row: Quota | ScopeUsage) => row.tenantId === tenantId && row.projectId === projectId;
  const dimension = dimensionOf(pool.kind);
  const row = quotas.find(ofScope);
  if (!dimension || !row) return undefined;
  const used = usages.find(ofScope)?.[dimension.used] ?? 0;
  if (used + units <= row[dimension.limit]) return undefined;
  const limit = `${dimension.limit}=${row[dimension.limit]}`;
  const subject = projectId ? `project:${projectId}` : `tenant:${tenantId}`;
  return {
    reason,
    subject,
    quota: { row, limit },
    description: `${subject} has ${limit}: ${used} used, ${units} wanted`,
  };
}

function sizeObstacle({ units }: Wanted, { id, used, currentSize }: WorkerPool): Obstacle | undefined {
  if (used + units <= currentSize) return undefined;
  return {
    reason: "POOL_FULL",
    subject: `pool:${id}`,
    description: `pool ${id} has ${currentSize} slots: ${used} used, ${units} wanted`,
  };
}
