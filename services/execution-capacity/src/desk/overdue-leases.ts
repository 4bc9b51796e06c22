import { deadlineCause } from "@runtime-cloud/eventing/cause";
import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import type { Context } from "../context.ts";
import { interleave } from "./interleave.ts";
import type { LeaseDesk } from "./lease-desk.ts";

/** How long an expired lease may hold its slots, or a holder wait in vain, where no wake-up came. */
const SWEEP_EVERY_MS = 1_200;
/** A wake-up comes at the end of the second, and shows what it ended: until then the sweep leaves it the work. */
const GRACE_MS = 1_000;
/** How many are read at once. */
const CHUNK = 10_000;
/** How many end in one transaction, while nobody asks for anything. */
export const BATCH = 256;
/** And while somebody does, whom each such transaction holds up: by its locks, if they want the same pool, and by its work. */
export const BATCH_BESIDE_OTHERS = 32;
/** How many of one tenant end before the next one's turn: the fewer tenants in a transaction, the fewer counters. */
const TURN = 256;

/** Ends the leases that weren't renewed in time. */
export function leaseExpiry(context: Context, desk: LeaseDesk): Deadline {
  return overdueLeases(context, desk, "lease-expiry", "ACTIVE");
}

/** Withdraws the leases that were waited for long enough. */
export function waitOver(context: Context, desk: LeaseDesk): Deadline {
  return overdueLeases(context, desk, "wait-over", "WAITING");
}

/** In small batches, of every tenant in turn. A wake-up's label names the pool; the sweep looks at all of them. */
function overdueLeases(context: Context, desk: LeaseDesk, kind: string, state: "ACTIVE" | "WAITING"): Deadline {
  return {
    kind,
    sweepEveryMs: SWEEP_EVERY_MS,
    graceMs: GRACE_MS,
    async run(label, graceMs) {
      const due = await dueLeases(context, state, label, graceMs);
      const cause = deadlineCause(kind, context.newId);
      const operations = interleave(due, ({ tenantId }) => tenantId, TURN).map(({ tenantId, id: leaseId }) => {
        return { kind: "expire", tenantId, leaseId, cause } as const;
      });
      const ended: string[] = [];
      while (operations.length > 0) {
        const batch = operations.splice(0, desk.isAsked() ? BATCH_BESIDE_OTHERS : BATCH);
        for (const result of await desk.expire(batch)) {
          if (result.status === "rejected") throw result.reason;
          if (result.value.lease.endedAt) ended.push(result.value.lease.id);
        }
      }
      return { ended, more: due.length >= CHUNK };
    },
  };
}

async function dueLeases(
  { pool: database }: Context,
  state: string,
  label: Readonly<Record<string, string>> = {},
  graceMs = 0,
): Promise<{ tenantId: string; id: string }[]> {
  const { pool = null, owner = null } = label;
  const { rows } = await database.query<{ tenantId: string; id: string }>({
    name: "due-leases",
    text: `
      SELECT lease.tenant_id AS "tenantId", lease.id
      FROM worker_pool pool
      CROSS JOIN LATERAL (
        SELECT tenant_id, id FROM capacity_lease
        WHERE pool_tenant_id = pool.tenant_id AND pool_id = pool.id AND (state = 'WAITING' OR state = 'ACTIVE')
          AND state::text = $1 AND due_at <= clock_timestamp() - make_interval(secs => $5)
        ORDER BY due_at LIMIT $4
      ) lease
      WHERE (pool.used > 0 OR pool.waiting > 0)
        AND ($2::text IS NULL OR pool.id = $2) AND ($3::text IS NULL OR pool.tenant_id = $3)
      LIMIT $4`,
    values: [state, pool, owner, CHUNK, graceMs / 1_000],
  });
  return rows;
}
