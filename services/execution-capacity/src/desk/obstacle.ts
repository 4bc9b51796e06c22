import type { CapacityLease, Quota, WaitReason, WorkerPool } from "../../generated/prisma/client.ts";
import type { Scope } from "../capacity/capacity.ts";
import { dimensionOf } from "../capacity/charge.ts";

/** What keeps a lease from being granted. */
export interface Obstacle {
  reason: WaitReason;
  /** Whose limit it is, for example `project:p1`. */
  subject: string;
  /** The quota that is reached, and which of its limits, as in `concurrentRuns=2`. */
  quota?: { row: Quota; limit: string; most: number };
  description: string;
}

export type Wanted = Pick<CapacityLease, "tenantId" | "projectId" | "units" | "resource">;

/** Why the pool can't grant what is wanted now, the holder's own limits before the pool's; undefined when it can. */
export function obstacleTo(wanted: Wanted, pool: WorkerPool, tenant: Scope, project: Scope): Obstacle | undefined {
  if (!accepts(pool, wanted.tenantId)) {
    return {
      reason: "POOL_NOT_ACCEPTING",
      subject: `pool:${pool.id}`,
      description: `pool ${pool.id} is ${pool.state} and grants nothing to this tenant now`,
    };
  }
  return (
    quotaObstacle("TENANT_QUOTA", `tenant:${wanted.tenantId}`, wanted, tenant) ??
    quotaObstacle("PROJECT_QUOTA", `project:${wanted.projectId}`, wanted, project) ??
    sizeObstacle(wanted, pool)
  );
}

/** Whether a quota is in the way of so many units whatever its use. */
export function isBeyond({ quota }: Obstacle, units: number): boolean {
  return quota !== undefined && units > quota.most;
}

function accepts({ state, tenantId, shared }: WorkerPool, forTenant: string): boolean {
  return state === "ACTIVE" && (shared || tenantId === forTenant);
}

function quotaObstacle(
  reason: "TENANT_QUOTA" | "PROJECT_QUOTA",
  subject: string,
  { units, resource }: Wanted,
  { quota: row, usage }: Scope,
): Obstacle | undefined {
  if (!row) return undefined;
  const dimension = dimensionOf(resource);
  const used = usage[dimension.used];
  if (used + units <= row[dimension.limit]) return undefined;
  const limit = `${dimension.limit}=${row[dimension.limit]}`;
  return {
    reason,
    subject,
    quota: { row, limit, most: row[dimension.limit] },
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
