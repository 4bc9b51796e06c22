import type { CapacityLease, CapacityResource } from "../../generated/prisma/client.ts";
import { type Capacity, keyOf, lockedPool, poolKey, scopeOf } from "./capacity.ts";

/** The limit of a quota that a resource counts against. */
export interface Dimension {
  limit: "concurrentRuns" | "concurrentSandboxes";
  used: "usedRuns" | "usedSandboxes";
}

const dimensions: Readonly<Record<CapacityResource, Dimension>> = {
  RUNS: { limit: "concurrentRuns", used: "usedRuns" },
  SANDBOXES: { limit: "concurrentSandboxes", used: "usedSandboxes" },
};

export function dimensionOf(resource: CapacityResource): Dimension {
  return dimensions[resource];
}

type Charged = Pick<CapacityLease, "tenantId" | "projectId" | "poolTenantId" | "poolId" | "units" | "resource">;

/** Charges a lease to its pool, its tenant and its project. */
export function charge(capacity: Capacity, lease: Charged): void {
  addTo(capacity, lease, lease.units, 0n);
  const { tenantId, projectId } = lease;
  if (["", projectId].some((name) => scopeOf(capacity, tenantId, name).quota)) capacity.granting.add(poolKey(lease));
}

/** Takes a lease off all that it was charged to, and keeps how long it lasted. */
export function giveBack(capacity: Capacity, lease: Charged, executionSeconds: bigint): void {
  addTo(capacity, lease, -lease.units, executionSeconds);
  capacity.stirred = true;
}

function addTo(capacity: Capacity, lease: Charged, units: number, executionSeconds: bigint): void {
  const { changes } = capacity;
  lockedPool(capacity, lease).used += units;
  changes.pools.add(poolKey(lease));
  for (const projectId of ["", lease.projectId]) {
    const { usage } = scopeOf(capacity, lease.tenantId, projectId);
    usage[dimensionOf(lease.resource).used] += units;
    usage.executionSeconds += executionSeconds;
    changes.scopes.add(keyOf(lease.tenantId, projectId));
  }
}
