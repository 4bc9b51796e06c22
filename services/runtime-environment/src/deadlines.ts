import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { acceptanceCause, claimDueFollowUps, followUp } from "./proposals/accepted-proposal.ts";
import { proposeDue } from "./proposals/auto-propose.ts";
import type { Context } from "./context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { DUE_BATCH, endEach } from "./observing/due.ts";
import { resolveVanished } from "./findings/finding-vanishing.ts";
import { claimDuePreviews, followPreview, proposingCause } from "./proposals/preview.ts";
import { endWithoutEffect, lockProposal } from "./proposals/proposal-transitions.ts";
import { enqueueDueLooks } from "./observing/schedule.ts";
import { endFreshness, STALENESS } from "./observing/staleness.ts";
import { endDueRules, endDueSuppressions } from "./suppression/suppression-ending.ts";

interface DueRow {
  id: string;
  tenantId: string;
  environmentId: string;
}

/** How long one question about a proposal may take. */
const FOLLOW_UP_TIMEOUT_MS = 5_000;

/** Everything that ends by time, each read as due by the database's clock. */
export function deadlines(context: Context): Deadline[] {
  const { client } = context;
  return [
    { kind: "observation", sweepEveryMs: 5_000, run: () => enqueueDueLooks(context) },
    { kind: STALENESS, sweepEveryMs: 15_000, run: () => endFreshness(context) },
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
      kind: "preview",
      sweepEveryMs: 5_000,
      async run() {
        const due = await claimDuePreviews(context);
        await Promise.all(
          due.map(async (proposal) => {
            await followPreview(context, proposal.id, {
              cause: await proposingCause(context, proposal),
              timeoutMs: FOLLOW_UP_TIMEOUT_MS,
            });
            await context.arm("preview", proposal.askAt);
          }),
        );
        return { ended: due.map(({ id }) => id), more: due.length > 0 };
      },
    },
    { kind: "suppression-end", sweepEveryMs: 15_000, run: () => endDueSuppressions(context) },
    { kind: "suppression-rule-end", sweepEveryMs: 15_000, run: () => endDueRules(context) },
    { kind: "vanished-drift", sweepEveryMs: 5_000, run: () => resolveVanished(context) },
    { kind: "auto-propose", sweepEveryMs: 10_000, run: () => proposeDue(context) },
  ];
}
