import { Code, ConnectError } from "@connectrpc/connect";
import { ProvisioningKind, RunMode, RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { type Cause, deadlineCause } from "@runtime-cloud/eventing/cause";
import { continuedCause } from "@runtime-cloud/eventing/continued-cause";
import { callFor } from "@runtime-cloud/eventing/peer";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { CREATE } from "@runtime-cloud/state-machines/lifecycle-edges";
import { reconciliationProposal } from "@runtime-cloud/state-machines/reconciliation-proposal";
import type { Proposal } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import type { Look } from "../observers/observer.ts";
import { isFinalRefusal } from "./peer-refusal.ts";
import { proposalDigest } from "./proposal-digest.ts";
import { MAX_CHANGES, previewColumn } from "./proposal-preview.ts";
import { advanceProposal, lockProposal } from "./proposal-transitions.ts";
import { endOf } from "./run-end.ts";

/** How many previews one claim takes: their questions are asked side by side. */
const CLAIMED_AT_ONCE = 10;
/** A plan is there within seconds, or its run waits for an executor: pauses double from one to the other. */
const FIRST_PAUSE_SECONDS = 1;
const LONGEST_PAUSE_SECONDS = 60;

/** Claims the proposals whose preview is due to be asked for, by moving the next time ahead. */
export async function claimDuePreviews({ client }: Pick<Context, "client">): Promise<DuePreview[]> {
  return client.$queryRaw<DuePreview[]>`
    UPDATE proposal SET asks = asks + 1, ask_at = clock_timestamp() + make_interval(
      secs => least(${FIRST_PAUSE_SECONDS} * power(2, least(asks, 16)), ${LONGEST_PAUSE_SECONDS}))
    WHERE id IN (
      SELECT id FROM proposal WHERE state = 'PROPOSED' AND preview_state = 'PENDING' AND ask_at <= statement_timestamp()
      ORDER BY ask_at LIMIT ${CLAIMED_AT_ONCE} FOR UPDATE SKIP LOCKED)
    RETURNING id, tenant_id AS "tenantId", ask_at AS "askAt"`;
}

/** Whoever proposed goes on in what is planned for it. */
export async function proposingCause({ client, newId }: Context, { id, tenantId }: DuePreview): Promise<Cause> {
  const proposed = { tenantId, aggregate: reconciliationProposal.id, id, event: CREATE };
  return (await continuedCause(client, proposed, "deadline:preview")) ?? deadlineCause("preview", newId);
}

interface DuePreview {
  id: string;
  tenantId: string;
  askAt: Date;
}

/**
 * Has a revert planned, which changes nothing, and attaches the plan once it is there. A preview that can't be had is
 * FAILED with the reason, and the proposal can be decided all the same. When IaCProvisioningService doesn't answer, it
 * is asked again.
 */
export async function followPreview(context: Context, id: string, look: Look): Promise<void> {
  const proposal = await context.client.proposal.findUnique({ where: { id } });
  if (!proposal || !awaitsPreview(proposal)) return;
  const call = callFor(proposal.tenantId, look.cause, look);
  try {
    const provisioningRunId = proposal.previewRunId ?? (await planPreview(context, proposal, look));
    const { run } = await context.provisioning.rpc.getProvisioningRun({ provisioningRunId }, call);
    const end = run && endOf(run);
    if (run?.state === RunState.PLANNED) await attachPlan(context, proposal, { provisioningRunId, look });
    else if (end && !end.applied) await failPreview(context, proposal, look, end.reason);
  } catch (err) {
    if (!(err instanceof ConnectError)) throw err;
    if (isFinalRefusal(err)) await failPreview(context, proposal, look, err.rawMessage);
    else context.logger.warn({ err, proposalId: id }, "no answer about a preview; it is asked for again");
  }
}

async function planPreview(context: Context, proposal: Proposal, look: Look): Promise<string> {
  const { id, tenantId, specificationId } = proposal;
  const plans = { specificationId, kind: ProvisioningKind.RECONCILIATION, mode: RunMode.PLAN_ONLY };
  const request = { ...plans, idempotencyKey: `preview-${id}` };
  const { run } = await context.provisioning.rpc.planProvisioning(request, callFor(tenantId, look.cause, look));
  if (!run) throw new ConnectError("PlanProvisioning answered without a run", Code.Internal);
  const { provisioningRunId: previewRunId } = run;
  await context.client.proposal.updateMany({ where: { id, state: "PROPOSED" }, data: { previewRunId } });
  return previewRunId;
}

/** What is decided from now on is the plan as well: the digest moves. */
async function attachPlan(context: Context, { id, tenantId }: Proposal, { provisioningRunId, look }: Planned) {
  const request = { provisioningRunId, pageSize: MAX_CHANGES };
  const plan = await context.provisioning.rpc.getPlan(request, callFor(tenantId, look.cause, look));
  const { planDigest, summary, changes } = plan;
  await inPreview(context, { id, tenantId }, look, async (unit, proposal) => {
    const findings = await unit.tx.finding.findMany({ where: { id: { in: proposal.findingIds } } });
    const digest = proposalDigest({ ...proposal, findings, planDigest });
    const destructive = summary?.destructive ?? proposal.destructive;
    const event = { type: "preview" as const, planDigest, destructive, digest };
    const preview = previewColumn({ changes, ...(summary && { summary }) });
    await advanceProposal(unit, proposal, event, { preview, askAt: null });
  });
}

async function failPreview(context: Context, proposal: Proposal, look: Look, reason: string): Promise<void> {
  const preview = previewColumn({ failure: reason });
  await inPreview(context, proposal, look, async (unit, pending) => {
    await advanceProposal(unit, pending, { type: "failPreview" }, { preview, askAt: null });
  });
}

async function inPreview(
  context: Context,
  { id, tenantId }: Pick<Proposal, "id" | "tenantId">,
  { cause }: Look,
  work: (unit: ServiceUnit, proposal: Proposal) => Promise<void>,
): Promise<void> {
  await unitOfWork(context, cause, async (unit) => {
    const proposal = await lockProposal(unit.tx, { id, tenantId });
    if (awaitsPreview(proposal)) await work(unit, proposal);
  });
}

/** Nobody needs the preview of what is decided, or will never be. */
function awaitsPreview({ state, previewState }: Proposal): boolean {
  return state === "PROPOSED" && previewState === "PENDING";
}

interface Planned {
  provisioningRunId: string;
  look: Look;
}
