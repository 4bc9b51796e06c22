import type {
  CapacityLease,
  FairShare,
  Quota,
  QueuePlace,
  ScopeUsage,
  WorkerPool,
} from "../../generated/prisma/client.ts";

type Text = string | null;

export interface LeaseRow {
  id: string;
  version: number;
  state: CapacityLease["state"];
  tenant_id: string;
  project_id: string;
  holder_kind: string;
  holder_id: string;
  resource: CapacityLease["resource"];
  pool_tenant_id: string;
  pool_id: string;
  units: number;
  priority: number;
  ttl_seconds: number;
  fencing_token: number | null;
  requested_at: string;
  wait_reason: CapacityLease["waitReason"];
  wait_deadline: Text;
  granted_at: Text;
  expires_at: Text;
  due_at: Text;
  ended_at: Text;
  release_reason: CapacityLease["releaseReason"];
  execution_seconds: number | null;
}

export interface PoolRow {
  tenant_id: string;
  id: string;
  version: number;
  state: WorkerPool["state"];
  kind: WorkerPool["kind"];
  scaling: WorkerPool["scaling"];
  current_size: number;
  desired_size: number;
  generation: number;
  used: number;
  next_token: number;
  waiting: number;
  selecting: number;
  contended: boolean;
  virtual_time: number;
  revision: number;
  environment_id: Text;
  program_version: Text;
  shared: boolean;
  resize_due_at: Text;
  resize_run_id: Text;
  resume_at: Text;
  drain_deadline: Text;
  note: Text;
  created_at: string;
}

export interface UsageRow {
  tenant_id: string;
  project_id: string;
  used_runs: number;
  used_sandboxes: number;
  execution_seconds: number;
  revision: number;
}

export interface QuotaRow {
  id: string;
  version: number;
  state: Quota["state"];
  tenant_id: string;
  project_id: string;
  concurrent_runs: number;
  concurrent_sandboxes: number;
  weight: number;
  created_at: string;
}

export interface FlowRow {
  pool_tenant_id: string;
  pool_id: string;
  tenant_id: string;
  project_id: string;
  waiting: number;
  virtual_time: number;
  inner_time: number;
  contended: boolean;
}

export type PlaceRow = Pick<FlowRow, "pool_tenant_id" | "pool_id" | "tenant_id"> & {
  lease_id: string;
  selecting: boolean;
};

export function leaseOf(row: LeaseRow): CapacityLease {
  return {
    id: row.id,
    version: row.version,
    state: row.state,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    holderKind: row.holder_kind,
    holderId: row.holder_id,
    resource: row.resource,
    poolTenantId: row.pool_tenant_id,
    poolId: row.pool_id,
    units: row.units,
    priority: row.priority,
    ttlSeconds: row.ttl_seconds,
    fencingToken: whole(row.fencing_token),
    requestedAt: new Date(row.requested_at),
    waitReason: row.wait_reason,
    waitDeadline: instant(row.wait_deadline),
    grantedAt: instant(row.granted_at),
    expiresAt: instant(row.expires_at),
    dueAt: instant(row.due_at),
    endedAt: instant(row.ended_at),
    releaseReason: row.release_reason,
    executionSeconds: whole(row.execution_seconds),
  };
}

export function poolOf(row: PoolRow): WorkerPool {
  return {
    tenantId: row.tenant_id,
    id: row.id,
    version: row.version,
    state: row.state,
    kind: row.kind,
    scaling: row.scaling,
    currentSize: row.current_size,
    desiredSize: row.desired_size,
    generation: row.generation,
    used: row.used,
    nextToken: BigInt(row.next_token),
    waiting: row.waiting,
    selecting: row.selecting,
    contended: row.contended,
    virtualTime: row.virtual_time,
    revision: BigInt(row.revision),
    environmentId: row.environment_id,
    programVersion: row.program_version,
    shared: row.shared,
    resizeDueAt: instant(row.resize_due_at),
    resizeRunId: row.resize_run_id,
    resumeAt: instant(row.resume_at),
    drainDeadline: instant(row.drain_deadline),
    note: row.note,
    createdAt: new Date(row.created_at),
  };
}

export function usageOf(row: UsageRow): ScopeUsage {
  return {
    tenantId: row.tenant_id,
    projectId: row.project_id,
    usedRuns: row.used_runs,
    usedSandboxes: row.used_sandboxes,
    executionSeconds: BigInt(row.execution_seconds),
    revision: BigInt(row.revision),
  };
}

export function quotaOf(row: QuotaRow): Quota {
  return {
    id: row.id,
    version: row.version,
    state: row.state,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    concurrentRuns: row.concurrent_runs,
    concurrentSandboxes: row.concurrent_sandboxes,
    weight: row.weight,
    createdAt: new Date(row.created_at),
  };
}

export function flowOf(row: FlowRow): FairShare {
  return {
    poolTenantId: row.pool_tenant_id,
    poolId: row.pool_id,
    tenantId: row.tenant_id,
    projectId: row.project_id,
    waiting: row.waiting,
    virtualTime: row.virtual_time,
    innerTime: row.inner_time,
    contended: row.contended,
  };
}

export function placeOf(row: PlaceRow): Place {
  return { poolTenantId: row.pool_tenant_id, poolId: row.pool_id, selecting: row.selecting };
}

/** A place in the queue of a pool; `selecting`: one of several that a waiter may have. */
export type Place = Pick<QueuePlace, "poolTenantId" | "poolId" | "selecting">;

function instant(text: Text): Date | null {
  return text === null ? null : new Date(text);
}

function whole(number: number | null): bigint | null {
  return number === null ? null : BigInt(number);
}
