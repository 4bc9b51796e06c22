import { Denied, IllegalTransition } from "@runtime-cloud/service-kit/errors";
import { advanceRun } from "./advance-run.ts";
import type { Context, ServiceUnit } from "../context.ts";
import type { Run } from "./run-row.ts";

/**
 * Approves the plan that was reviewed, and no other. Throws Denied for one's own run where another person has to look
 * at it, and IllegalTransition for another plan's digest.
 */
export async function approveRun(
  context: Context,
  unit: ServiceUnit,
  run: Run,
  { by, planDigest }: { by: string; planDigest: string },
): Promise<Run> {
  if (run.state === "AWAITING_APPROVAL") {
    if (run.separateApprover && by === run.requestedBy) {
      throw new Denied(`${by} asked for run ${run.id}: in PRODUCTION somebody else has to approve it`);
    }
    if (planDigest !== run.planDigest) throw otherPlan(run);
  }
  return advanceRun(context, unit, run, { type: "approve", by, planDigest, approvalId: null });
}

function otherPlan({ id, state, planDigest }: Run): IllegalTransition {
  return new IllegalTransition({
    aggregate: "ProvisioningRun",
    id,
    state,
    event: "approve",
    reason: `the plan to review is ${planDigest}`,
    allowed: ["approve", "reject", "cancel"],
  });
}
