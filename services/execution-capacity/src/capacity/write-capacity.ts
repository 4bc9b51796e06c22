import { type Capacity, keyOf, resetChanges } from "./capacity.ts";
import type { Changes } from "./changes.ts";
import { type Assumptions, statementOf } from "./write-statement.ts";
import { writeQueues } from "./write-queues.ts";

const nothingAssumed: Assumptions = { holders: [], tenants: [], grown: [], lasting: [] };

/**
 * Puts back what has changed: counters, leases, history and events in one statement, and the queues in a second one if
 * they changed. Columns travel as arrays, which costs a fraction of what JSON does. Fails as a lost race does where what
 * it was decided on has changed: a renewed lease, which isn't locked, or anything that was remembered.
 */
export async function writeCapacity(capacity: Capacity, assumed = nothingAssumed): Promise<void> {
  const { changes, query } = capacity;
  keepTold(capacity);
  if (isEmpty(changes)) return;
  await query(statementOf(capacity, assumed));
  await writeQueues(capacity);
  countRevisions(capacity);
  resetChanges(capacity);
}

/** Notes the leases that are about to be written, for those who follow them. */
export function keepTold({ changes, leases, told }: Capacity): void {
  for (const key of [...changes.born, ...changes.moved.keys()]) {
    const lease = leases.get(key);
    if (lease) told.set(lease.id, lease);
  }
}

/** As the database counts them. */
export function countRevisions(capacity: Capacity): void {
  const { changes, pools, scopes } = capacity;
  for (const key of changes.pools) {
    const pool = pools.get(key);
    if (pool) pool.revision += 1n;
  }
  for (const key of changes.scopes) {
    const scope = scopes.get(key);
    if (scope) scope.usage.revision += 1n;
  }
  for (const key of changes.quotas) {
    const quota = scopes.get(key)?.quota;
    const tenant = quota && scopes.get(keyOf(quota.tenantId, ""));
    if (tenant) tenant.usage.revision += 1n;
  }
}

function isEmpty({ born, moved, history, pools, scopes, quotas, flows, placed, left }: Changes): boolean {
  const sizes = [born.size, moved.size, history.length, pools.size, scopes.size, quotas.size, flows.size];
  return [...sizes, placed.length, left.length].every((size) => size === 0);
}
