import { type CapacityLease, Prisma, type ScopeUsage, type WorkerPool } from "../../generated/prisma/client.ts";
import type { Capacity } from "./capacity.ts";
import type { HistoryEntry, OutboxEntry } from "./changes.ts";

/** What must be so beside what is locked, where a decision was made without locks. */
export interface Assumptions {
  /** Holders that haven't ended. */
  holders: readonly { tenantId: string; holderKind: string; holderId: string }[];
  /** Tenants that wait nowhere. */
  tenants: readonly string[];
  /** Tenants that wait in no pool which holds up those behind. */
  grown: readonly string[];
  /** Pools that don't drain. */
  lasting: readonly { poolTenantId: string; poolId: string }[];
}

/**
 * One statement that writes what has changed, and nothing where what it was decided on has changed meanwhile. Only the
 * parts that there are: a single operation shouldn't pay for all that a batch may hold.
 *
 * Rows that others are looked up for come with a LIMIT that spares none: it has the planner expect one, and look the
 * others up by their keys. Else it would read a table whole that is small when it is planned, and go on so while it grows.
 */
export function statementOf(capacity: Capacity, assumed: Assumptions): Prisma.Sql {
  const { changes, leases } = capacity;
  const born = [...changes.born].flatMap((key) => leases.get(key) ?? []);
  const moved = [...changes.moved].flatMap(([key, before]) => {
    const lease = leases.get(key);
    return lease ? [{ lease, before }] : [];
  });
  const pools = [...changes.pools].flatMap((key) => capacity.pools.get(key) ?? []);
  const usages = [...changes.scopes].flatMap((key) => capacity.scopes.get(key)?.usage ?? []);
  const { history, events } = changes;

  const parts = [
    ...(pools.length > 0 ? [poolPart(pools)] : []),
    ...(usages.length > 0 ? [usagePart(usages)] : []),
    ...(born.length > 0 ? [bornPart(born)] : []),
    ...(moved.length > 0 ? [movedPart(moved)] : []),
    ...(history.length > 0 ? [historyPart(history)] : []),
    ...(events.length > 0 ? [announcedPart(events)] : []),
  ];
  const unchanged = [
    ...(pools.length > 0 ? [Prisma.sql`(SELECT count(*) FROM pool) = ${pools.length}`] : []),
    ...(usages.length > 0 ? [Prisma.sql`(SELECT count(*) FROM usage) = ${usages.length}`] : []),
    ...(moved.length > 0 ? [Prisma.sql`(SELECT count(*) FROM moved) = ${moved.length}`] : []),
    ...assumptions(assumed),
  ];
  const all = unchanged.length > 0 ? Prisma.join(unchanged, " AND ") : Prisma.sql`true`;
  return parts.length > 0
    ? Prisma.sql`WITH ${Prisma.join(parts, ", ")} SELECT assert_unchanged(${all})`
    : Prisma.sql`SELECT assert_unchanged(${all})`;
}

function assumptions({ holders, tenants, grown, lasting }: Assumptions): Prisma.Sql[] {
  const ended = Prisma.sql`NOT EXISTS (
    SELECT FROM (SELECT * FROM unnest(
      ${holders.map((h) => h.tenantId)}::text[], ${holders.map((h) => h.holderKind)}::text[],
      ${holders.map((h) => h.holderId)}::text[]
    ) AS holder (tenant_id, kind, id) LIMIT ${holders.length}) AS holder
    JOIN ended_holder ended ON ended.tenant_id = holder.tenant_id AND ended.holder_kind = holder.kind
      AND ended.holder_id = holder.id)`;
  const waiting = Prisma.sql`NOT EXISTS (
    SELECT FROM fair_share WHERE tenant_id = ANY (${[...tenants]}::text[]) AND waiting > 0)`;
  const holdingUp = Prisma.sql`NOT EXISTS (
    SELECT FROM fair_share flow
    JOIN worker_pool held ON held.tenant_id = flow.pool_tenant_id AND held.id = flow.pool_id
    WHERE flow.tenant_id = ANY (${[...grown]}::text[]) AND flow.waiting > 0 AND held.contended)`;
  const draining = Prisma.sql`NOT EXISTS (
    SELECT FROM (SELECT * FROM unnest(
      ${lasting.map((p) => p.poolTenantId)}::text[], ${lasting.map((p) => p.poolId)}::text[]
    ) AS c (tenant_id, id) LIMIT ${lasting.length}) AS c
    JOIN worker_pool drained ON drained.tenant_id = c.tenant_id AND drained.id = c.id
    WHERE drained.state = 'DRAINING')`;
  return [
    ...(holders.length > 0 ? [ended] : []),
    ...(tenants.length > 0 ? [waiting] : []),
    ...(grown.length > 0 ? [holdingUp] : []),
    ...(lasting.length > 0 ? [draining] : []),
  ];
}

function poolPart(pools: readonly WorkerPool[]): Prisma.Sql {
  return Prisma.sql`pool AS (
      UPDATE worker_pool SET used = c.used, next_token = c.next_token, waiting = c.waiting, selecting = c.selecting,
        contended = c.contended, virtual_time = c.virtual_time, state = c.state::"PoolState", version = c.version,
        revision = c.revision + 1
      FROM (SELECT * FROM unnest(
        ${pools.map((p) => p.tenantId)}::text[], ${pools.map((p) => p.id)}::text[], ${pools.map((p) => p.used)}::int[],
        ${pools.map((p) => String(p.nextToken))}::text[]::bigint[], ${pools.map((p) => p.waiting)}::int[],
        ${pools.map((p) => p.selecting)}::int[], ${pools.map((p) => p.contended)}::bool[],
        ${pools.map((p) => p.virtualTime)}::float8[], ${pools.map((p) => p.state)}::text[],
        ${pools.map((p) => p.version)}::int[], ${pools.map((p) => String(p.revision))}::text[]::bigint[]
      ) AS c (tenant_id, id, used, next_token, waiting, selecting, contended, virtual_time, state, version, revision)
      LIMIT ${pools.length}) AS c
      WHERE worker_pool.tenant_id = c.tenant_id AND worker_pool.id = c.id AND worker_pool.revision = c.revision
      RETURNING 1
  )`;
}

function usagePart(usages: readonly ScopeUsage[]): Prisma.Sql {
  return Prisma.sql`usage AS (
      UPDATE scope_usage SET used_runs = c.used_runs, used_sandboxes = c.used_sandboxes,
        execution_seconds = c.execution_seconds, revision = c.revision + 1
      FROM (SELECT * FROM unnest(
        ${usages.map((u) => u.tenantId)}::text[], ${usages.map((u) => u.projectId)}::text[],
        ${usages.map((u) => u.usedRuns)}::int[], ${usages.map((u) => u.usedSandboxes)}::int[],
        ${usages.map((u) => String(u.executionSeconds))}::text[]::bigint[],
        ${usages.map((u) => String(u.revision))}::text[]::bigint[]
      ) AS c (tenant_id, project_id, used_runs, used_sandboxes, execution_seconds, revision)
      LIMIT ${usages.length}) AS c
      WHERE scope_usage.tenant_id = c.tenant_id AND scope_usage.project_id = c.project_id
        AND scope_usage.revision = c.revision
      RETURNING 1
  )`;
}

function bornPart(born: readonly CapacityLease[]): Prisma.Sql {
  return Prisma.sql`born AS (
      INSERT INTO capacity_lease (id, version, state, tenant_id, project_id, holder_kind, holder_id, resource,
        pool_tenant_id, pool_id, units, priority, ttl_seconds, fencing_token, requested_at, wait_reason, wait_deadline,
        granted_at, expires_at, due_at)
      SELECT id, version, state::"LeaseState", tenant_id, project_id, holder_kind, holder_id,
        resource::"CapacityResource", pool_tenant_id, pool_id, units, priority, ttl_seconds, fencing_token,
        requested_at, wait_reason::"WaitReason", wait_deadline, granted_at, expires_at, due_at
      FROM unnest(
        ${born.map((l) => l.id)}::uuid[], ${born.map((l) => l.version)}::int[], ${born.map((l) => l.state)}::text[],
        ${born.map((l) => l.tenantId)}::text[], ${born.map((l) => l.projectId)}::text[],
        ${born.map((l) => l.holderKind)}::text[], ${born.map((l) => l.holderId)}::text[],
        ${born.map((l) => l.resource)}::text[], ${born.map((l) => l.poolTenantId)}::text[],
        ${born.map((l) => l.poolId)}::text[], ${born.map((l) => l.units)}::int[],
        ${born.map((l) => l.priority)}::int[], ${born.map((l) => l.ttlSeconds)}::int[],
        ${born.map((l) => text(l.fencingToken))}::text[]::bigint[], ${born.map((l) => iso(l.requestedAt))}::timestamptz[],
        ${born.map((l) => l.waitReason)}::text[], ${born.map((l) => iso(l.waitDeadline))}::timestamptz[],
        ${born.map((l) => iso(l.grantedAt))}::timestamptz[], ${born.map((l) => iso(l.expiresAt))}::timestamptz[],
        ${born.map((l) => iso(l.dueAt))}::timestamptz[]
      ) AS c (id, version, state, tenant_id, project_id, holder_kind, holder_id, resource, pool_tenant_id, pool_id, units,
        priority, ttl_seconds, fencing_token, requested_at, wait_reason, wait_deadline, granted_at, expires_at, due_at)
  )`;
}

function movedPart(moved: readonly Moved[]): Prisma.Sql {
  const after = moved.map(({ lease }) => lease);
  return Prisma.sql`moved AS (
      UPDATE capacity_lease SET version = c.version, state = c.state::"LeaseState", pool_tenant_id = c.pool_tenant_id,
        pool_id = c.pool_id, fencing_token = c.fencing_token, wait_reason = c.wait_reason::"WaitReason",
        wait_deadline = c.wait_deadline, granted_at = c.granted_at, expires_at = c.expires_at, due_at = c.due_at,
        ended_at = c.ended_at, release_reason = c.release_reason::"ReleaseReason",
        execution_seconds = c.execution_seconds
      FROM (SELECT * FROM unnest(
        ${after.map((l) => l.tenantId)}::text[], ${after.map((l) => l.id)}::uuid[],
        ${moved.map(({ before }) => before)}::int[], ${after.map((l) => l.version)}::int[],
        ${after.map((l) => l.state)}::text[], ${after.map((l) => l.poolTenantId)}::text[],
        ${after.map((l) => l.poolId)}::text[], ${after.map((l) => text(l.fencingToken))}::text[]::bigint[],
        ${after.map((l) => l.waitReason)}::text[], ${after.map((l) => iso(l.waitDeadline))}::timestamptz[],
        ${after.map((l) => iso(l.grantedAt))}::timestamptz[], ${after.map((l) => iso(l.expiresAt))}::timestamptz[],
        ${after.map((l) => iso(l.dueAt))}::timestamptz[], ${after.map((l) => iso(l.endedAt))}::timestamptz[],
        ${after.map((l) => l.releaseReason)}::text[], ${after.map((l) => text(l.executionSeconds))}::text[]::bigint[]
      ) AS c (tenant_id, id, before, version, state, pool_tenant_id, pool_id, fencing_token, wait_reason, wait_deadline,
        granted_at, expires_at, due_at, ended_at, release_reason, execution_seconds)
      LIMIT ${after.length}) AS c
      WHERE capacity_lease.tenant_id = c.tenant_id AND capacity_lease.id = c.id AND capacity_lease.version = c.before
      RETURNING 1
  )`;
}

function historyPart(history: readonly HistoryEntry[]): Prisma.Sql {
  return Prisma.sql`history AS (
      INSERT INTO transition (aggregate, aggregate_id, tenant_id, version, from_state, event, to_state, actor,
        correlation_id, causation_id, traceparent)
      SELECT * FROM unnest(
        ${history.map((h) => h.aggregate)}::text[], ${history.map((h) => h.id)}::text[],
        ${history.map((h) => h.tenantId)}::text[], ${history.map((h) => h.version)}::int[],
        ${history.map((h) => h.from)}::text[], ${history.map((h) => h.event)}::text[],
        ${history.map((h) => h.to)}::text[], ${history.map((h) => h.cause.actor)}::text[],
        ${history.map((h) => h.cause.correlationId)}::text[], ${history.map((h) => h.cause.causationId ?? null)}::text[],
        ${history.map((h) => h.cause.traceparent ?? null)}::text[])
  )`;
}

function announcedPart(events: readonly OutboxEntry[]): Prisma.Sql {
  return Prisma.sql`announced AS (
      INSERT INTO outbox_message (id, topic, tenant_id, subject, envelope)
      SELECT * FROM unnest(
        ${events.map((e) => e.id)}::uuid[], ${events.map((e) => e.topic)}::text[],
        ${events.map((e) => e.tenantId)}::text[], ${events.map((e) => e.subject)}::text[],
        ${events.map((e) => e.envelope)}::text[]::jsonb[])
  )`;
}

/** A lease that was changed, and the version that the database has. */
interface Moved {
  lease: CapacityLease;
  before: number;
}

function iso(instant: Date | null): string | null {
  return instant && instant.toISOString();
}

function text(whole: bigint | null): string | null {
  return whole === null ? null : String(whole);
}
