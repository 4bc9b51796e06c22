import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import type { ApprovalDecided } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import { ApprovalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/run_control_pb";
import { advanceRun } from "./advance-run.ts";
import type { Context, ServiceUnit, Tx } from "../context.ts";
import { type Run, unsealed } from "./run-row.ts";

/** What another service's texts may have of a row. */
const MAX_NAME_LENGTH = 200;
const MAX_REASON_LENGTH = 1_000;

/** The states that end a request without an approval. */
const REFUSALS: ReadonlySet<ApprovalState> = new Set([
  ApprovalState.REJECTED,
  ApprovalState.EXPIRED,
  ApprovalState.STALE,
  ApprovalState.CANCELLED,
]);

/**
 * ApprovalDecided: decides on the plan that waits for it. A decision that comes before its plan is tried again later;
 * one that is not about a run of ours, or comes for a run that was decided, is ignored. So is a state that this version
 * doesn't know: the run goes on waiting, for a decision that is understood or for its deadline.
 */
export async function applyApproval(
  context: Context,
  unit: ServiceUnit,
  decided: ApprovalDecided,
  { time }: CloudEvent,
): Promise<void> {
  const isApproved = decided.state === ApprovalState.APPROVED;
  if (!isApproved && !REFUSALS.has(decided.state)) return;
  const run = await findDecided(unit.tx, decided);
  if (!run || !isUndecided(run)) return;
  if (run.id !== decided.runId && !sawThePlan(run, time)) return;

  const by = (decided.decidedBy || unit.cause.actor).slice(0, MAX_NAME_LENGTH);
  const { approvalId } = decided;
  if (isApproved) {
    await advanceRun(context, unit, run, { type: "approve", by, planDigest: run.planDigest ?? "", approvalId });
  } else {
    const reason = decided.reason || `approval ${approvalId} is ${ApprovalState[decided.state]}`;
    await advanceRun(context, unit, run, {
      type: "reject",
      at: unit.at,
      by,
      reason: reason.slice(0, MAX_REASON_LENGTH),
    });
  }
}

async function findDecided(tx: Tx, { tenantId, runId, approvalId }: ApprovalDecided): Promise<Run | null> {
  const named = await tx.provisioningRun.findFirst({ where: { id: runId, tenantId }, omit: unsealed });
  if (named) return named;
  return tx.provisioningRun.findFirst({ where: { tenantId, approvalId }, omit: unsealed, orderBy: { id: "desc" } });
}

function isUndecided({ state }: Run): boolean {
  return state === "QUEUED" || state === "PLANNING" || state === "AWAITING_APPROVAL";
}

/** The approval that a promotion came with is spent: only a decision taken since has seen the plan that waits. */
function sawThePlan({ state, plannedAt }: Run, time: string | undefined): boolean {
  return state === "AWAITING_APPROVAL" && plannedAt !== null && time !== undefined && new Date(time) > plannedAt;
}
