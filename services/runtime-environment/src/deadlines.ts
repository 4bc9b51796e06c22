import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { acceptanceCause, claimDueFollowUps, followUp } from "./accepted-proposal.ts";
import { proposeDue } from "./auto-propose.ts";
import type { Context } from "./context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { DUE_BATCH, endEach } from "./due.ts";
import { advanceFinding } from "./finding-transitions.ts";
import { advanceInventory, lockEnvironment } from "./inventory.ts";
import { endWithoutEffect, lockProposal } from "./proposal-transitions.ts";
import { claimDueLooks, OBSERVATIONS } from "./schedule.ts";

interface DueRow {
  id: string;
  tenantId: string;
  environmentId: string;
}

/** How long one accepted proposal's questions may take. */
const FOLLOW_UP_TIMEOUT_MS = 5_000;

/** Everything that ends by time, each read as due by the database's clock. */
export function deadlines(context: Context): Deadline[] {
  const { client } = context;
  return [
    {
      kind: "observation",
      sweepEveryMs: 5_000,
      async run() {
        const due = await claimDueLooks(context);
        for (const { id: environmentId, observeAt } of due) {
          await context.enqueue(OBSERVATIONS, environmentId, { environmentId });
          await context.arm("observation", observeAt);
        }
        return { ended: due.map(({ id }) => id), more: due.length > 0 };
      },
    },
    {
      kind: "staleness",
      sweepEveryMs: 15_000,
      async run() {
        const due = await client.$queryRaw<DueRow[]>`
          SELECT id, tenant_id AS "tenantId", id AS "environmentId" FROM inventory
          WHERE state = 'FRESH' AND stale_at <= clock_timestamp() ORDER BY stale_at LIMIT ${DUE_BATCH}`;
        return endEach(context, "staleness", due, async (unit, row) => {
          const inventory = await lockEnvironment(unit.tx, row);
          const at = await transactionNow(unit.tx);
          if (inventory.state !== "FRESH" || !inventory.staleAt || inventory.staleAt > at) return false;
          await advanceInventory(unit, inventory, { type: "expire", at });
          return true;
        });
      },
    },
    {
      kind: "proposal-expiry",
      sweepEveryMs: 15_000,
      async run() {
        const due = await client.$queryRaw<DueRow[]>`
          SELECT id, tenant_id AS "tenantId", environment_id AS "environmentId" FROM proposal
          WHERE state = 'PROPOSED' AND expires_at <= clock_timestamp() ORDER BY expires_at LIMIT ${DUE_BATCH}`;
        return endEach(context, "proposal-expiry", due, async (unit, row) => {
          const proposal = await lockProposal(unit.tx, row);
          if (proposal.state !== "PROPOSED") return false;
          await endWithoutEffect(unit, proposal, { type: "expire", at: await transactionNow(unit.tx) });
          return true;
        });
      },
    },
    {
      kind: "acceptance",
      sweepEveryMs: 5_000,
      async run() {
        const due = await claimDueFollowUps(context);
        await Promise.all(
          due.map(async (proposal) =>
            followUp(context, proposal.id, {
              cause: await acceptanceCause(context, proposal),
              timeoutMs: FOLLOW_UP_TIMEOUT_MS,
            }),
          ),
        );
        return { ended: due.map(({ id }) => id), more: due.length > 0 };
      },
    },
    {
      kind: "suppression-end",
      sweepEveryMs: 15_000,
      async run() {
        const due = await client.$queryRaw<DueRow[]>`
          SELECT id, tenant_id AS "tenantId", environment_id AS "environmentId" FROM finding
          WHERE state = 'SUPPRESSED' AND suppressed_until <= clock_timestamp()
          ORDER BY suppressed_until LIMIT ${DUE_BATCH}`;
        return endEach(context, "suppression-end", due, async (unit, row) => {
          await lockEnvironment(unit.tx, { id: row.environmentId, tenantId: row.tenantId });
          const finding = await unit.tx.finding.findUniqueOrThrow({ where: { id: row.id } });
          const at = await transactionNow(unit.tx);
          if (finding.state !== "SUPPRESSED" || !finding.suppressedUntil || finding.suppressedUntil > at) return false;
          await advanceFinding(unit, finding, { type: "expire", at });
          return true;
        });
      },
    },
    { kind: "auto-propose", sweepEveryMs: 10_000, run: () => proposeDue(context) },
  ];
}
