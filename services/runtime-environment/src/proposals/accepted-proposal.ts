import { ConnectError } from "@connectrpc/connect";
import { type Cause, deadlineCause } from "@runtime-cloud/eventing/cause";
import { continuedCause } from "@runtime-cloud/eventing/continued-cause";
import { callFor } from "@runtime-cloud/eventing/peer";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { reconciliationProposal } from "@runtime-cloud/state-machines/reconciliation-proposal";
import type { Proposal } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { FIRST_ASK_SECONDS, LONGEST_PAUSE_SECONDS } from "./next-ask.ts";
import type { Look } from "../observers/observer.ts";
import { isFinalRefusal } from "./peer-refusal.ts";
import { planAccepted } from "./plan-accepted.ts";
import { endProposal, endWithoutEffect, lockProposal } from "./proposal-transitions.ts";
import { endOf, type RunEnd } from "./run-end.ts";
import { lookSoon } from "../observing/schedule.ts";

/** How many proposals one claim takes: their questions are asked side by side. */
const CLAIMED_AT_ONCE = 10;

/** Claims the accepted proposals that are due to be asked for, by moving the next time ahead. */
export async function claimDueFollowUps({ client }: Pick<Context, "client">): Promise<DueProposal[]> {
  return client.$queryRaw<DueProposal[]>`
    UPDATE proposal SET asks = asks + 1, ask_at = clock_timestamp() + make_interval(
      secs => least(${FIRST_ASK_SECONDS} * power(2, least(asks + 1, 16)), ${LONGEST_PAUSE_SECONDS}))
    WHERE id IN (
      SELECT id FROM proposal WHERE state IN ('ACCEPTING', 'ACCEPTED') AND ask_at <= statement_timestamp()
      ORDER BY ask_at LIMIT ${CLAIMED_AT_ONCE} FOR UPDATE SKIP LOCKED)
    RETURNING id, tenant_id AS "tenantId"`;
}

/** Whoever accepted the proposal goes on in what is asked for it later. */
export async function acceptanceCause({ client, newId }: Context, { id, tenantId }: DueProposal): Promise<Cause> {
  const accepted = { tenantId, aggregate: reconciliationProposal.id, id, event: "accept" };
  return (await continuedCause(client, accepted, "deadline:acceptance")) ?? deadlineCause("acceptance", newId);
}

interface DueProposal {
  id: string;
  tenantId: string;
}

/**
 * Takes an accepted proposal further: has its version declared where it adopts what is there, and its run planned, then
 * learns how the run went. Events tell that sooner; this finds what came before the run was known here, and a cancelled
 * run, which no event tells. When IaCProvisioningService doesn't answer, the proposal stays as it is and is asked for
 * again.
 */
export async function followUp(context: Context, id: string, look: Look): Promise<void> {
  const proposal = await context.client.proposal.findUnique({ where: { id } });
  if (!proposal) return;
  try {
    const accepted = proposal.state === "ACCEPTING" ? await planAccepted(context, proposal, look) : proposal;
    if (accepted.state === "ACCEPTED") await checkRun(context, accepted, look);
  } catch (err) {
    if (!(err instanceof ConnectError)) throw err;
    if (isFinalRefusal(err)) await fail(context, proposal, look, err.rawMessage);
    else context.logger.warn({ err, proposalId: id }, "no answer about an accepted proposal; it is asked for again");
  }
}

async function checkRun(context: Context, { id, tenantId, provisioningRunId }: Proposal, look: Look): Promise<void> {
  if (provisioningRunId === null) return;
  const call = callFor(tenantId, look.cause, look);
  const { run } = await context.provisioning.rpc.getProvisioningRun({ provisioningRunId }, call);
  const end = run && endOf(run);
  if (!end) return;
  await unitOfWork(context, look.cause, async (unit) => {
    const accepted = await lockProposal(unit.tx, { id, tenantId });
    await endRun(unit, context, accepted, end);
  });
}

const MAX_REASON = 1_000;

/** Completes or fails the proposal whose run ended, and has the environment looked at. It must be locked. */
export async function endRun(unit: ServiceUnit, context: Context, proposal: Proposal, end: RunEnd): Promise<void> {
  if (proposal.state !== "ACCEPTED") return;
  if (end.applied) await endProposal(unit, proposal, { type: "complete" });
  else await endWithoutEffect(unit, proposal, { type: "fail", reason: end.reason.slice(0, MAX_REASON) });
  await lookSoon(unit, context, proposal.environmentId);
}

async function fail(context: Context, { id, tenantId }: Proposal, { cause }: Look, reason: string): Promise<void> {
  await unitOfWork(context, cause, async (unit) => {
    const proposal = await lockProposal(unit.tx, { id, tenantId });
    if (proposal.state !== "ACCEPTING" && proposal.state !== "ACCEPTED") return;
    await endWithoutEffect(unit, proposal, { type: "fail", reason: reason.slice(0, MAX_REASON) });
  });
}
