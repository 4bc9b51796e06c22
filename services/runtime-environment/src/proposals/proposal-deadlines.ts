import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { DeadlineResult } from "@runtime-cloud/eventing/deadlines";
import type { Context } from "../context.ts";
import { DUE_BATCH, endEach } from "../due.ts";
import { acceptanceCause, claimDueFollowUps, followUp } from "./accepted-proposal.ts";
import { claimDuePreviews, followPreview, proposingCause } from "./preview.ts";
import { endWithoutEffect, lockProposal } from "./proposal-transitions.ts";

/** How long one question about a proposal may take. */
const FOLLOW_UP_TIMEOUT_MS = 5_000;

/** Ends the proposals that nobody has decided in time. */
export async function expireProposals(context: Context): Promise<DeadlineResult> {
  const due = await context.client.$queryRaw<{ id: string; tenantId: string }[]>`
    SELECT id, tenant_id AS "tenantId" FROM proposal
    WHERE state = 'PROPOSED' AND expires_at <= statement_timestamp() ORDER BY expires_at LIMIT ${DUE_BATCH}`;
  return endEach(context, "proposal-expiry", due, async (unit, row) => {
    const proposal = await lockProposal(unit.tx, row);
    if (proposal.state !== "PROPOSED") return false;
    await endWithoutEffect(unit, proposal, { type: "expire", at: await transactionNow(unit.tx) });
    return true;
  });
}

/** Takes the accepted proposals further whose turn it is. */
export async function followUpAccepted(context: Context): Promise<DeadlineResult> {
  const due = await claimDueFollowUps(context);
  await Promise.all(
    due.map(async (proposal) => {
      const cause = await acceptanceCause(context, proposal);
      await followUp(context, proposal.id, { cause, timeoutMs: FOLLOW_UP_TIMEOUT_MS });
    }),
  );
  return { ended: due.map(({ id }) => id), more: due.length > 0 };
}

/** Asks for the previews that proposals still wait for. */
export async function followUpPreviews(context: Context): Promise<DeadlineResult> {
  const due = await claimDuePreviews(context);
  await Promise.all(
    due.map(async (proposal) => {
      const cause = await proposingCause(context, proposal);
      await followPreview(context, proposal.id, { cause, timeoutMs: FOLLOW_UP_TIMEOUT_MS });
      await context.arm("preview", proposal.askAt);
    }),
  );
  return { ended: due.map(({ id }) => id), more: due.length > 0 };
}
