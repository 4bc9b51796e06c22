import type { Removed } from "@runtime-cloud/eventing/event-log/remove-outlived";
import type pg from "pg";
import type { CapacityLease } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

/** Rows of one statement, so that it is short however much has ended. */
export const BATCH = 1_000;

/** A lease of the tenant that ended a while ago, as it ended. */
export function pastLease(tx: Tx, tenantId: string, id: string): Promise<CapacityLease | null> {
  return tx.pastLease.findUnique({ where: { tenantId_id: { tenantId, id } } });
}

/** The two tables have the same columns, in another order. */
const COLUMNS = [
  ...["id", "version", "state", "tenant_id", "project_id", "holder_kind", "holder_id", "resource", "pool_tenant_id"],
  ...["pool_id", "units", "priority", "ttl_seconds", "fencing_token", "requested_at", "wait_reason", "wait_deadline"],
  ...["granted_at", "expires_at", "due_at", "ended_at", "release_reason", "execution_seconds"],
].join(", ");

/** Moves leases that ended longer ago than that out of the way of those that live. */
export async function moveEnded(pool: pg.Pool, hours: number): Promise<Removed> {
  const { rowCount } = await pool.query(
    `WITH due AS MATERIALIZED (
       SELECT tenant_id, id FROM capacity_lease WHERE ended_at < now() - make_interval(hours => $1)
       ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
     ),
     moved AS (
       DELETE FROM capacity_lease lease USING due
       WHERE lease.tenant_id = due.tenant_id AND lease.id = due.id RETURNING lease.*
     )
     INSERT INTO past_lease (${COLUMNS}) SELECT ${COLUMNS} FROM moved`,
    [hours, BATCH],
  );
  return whileFull(rowCount);
}

/** Removes leases that ended longer ago than that. */
export async function removePast(pool: pg.Pool, days: number): Promise<Removed> {
  const { rowCount } = await pool.query(
    `DELETE FROM past_lease WHERE (tenant_id, id) IN (
       SELECT tenant_id, id FROM past_lease WHERE ended_at < now() - make_interval(days => $1)
       ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
     )`,
    [days, BATCH],
  );
  return whileFull(rowCount);
}

/** Forgets holders that ended longer ago than that: an acquire for one of them won't come any more. */
export async function forgetHolders(pool: pg.Pool, days: number): Promise<Removed> {
  const { rowCount } = await pool.query(
    `DELETE FROM ended_holder WHERE (tenant_id, holder_kind, holder_id) IN (
       SELECT tenant_id, holder_kind, holder_id FROM ended_holder WHERE ended_at < now() - make_interval(days => $1)
       ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
     )`,
    [days, BATCH],
  );
  return whileFull(rowCount);
}

function whileFull(rowCount: number | null): Removed {
  const removed = rowCount ?? 0;
  return { removed, next: removed === BATCH ? 0n : undefined };
}
