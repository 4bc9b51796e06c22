import {
  DecideReconciliationRequest_Decision as Decision,
  type Proposal,
  ProposalPreview_State as Preview,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import {
  ProposalState,
  type ReconciliationDirection,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventually } from "./eventually.ts";
import { expect } from "./narrator.ts";
import { runIn } from "./runs.ts";
import type { Stage } from "./stage.ts";

/** Proposes to reconcile all that is open. */
export async function proposed(
  { environments }: Stage,
  environmentId: string,
  direction: ReconciliationDirection,
): Promise<Proposal> {
  const { proposal } = await environments.proposeReconciliation({ environmentId, direction });
  expect(proposal?.state === ProposalState.PROPOSED, "it is not PROPOSED");
  return proposal;
}

/** The proposal once it shows what its run would do, with the digest that is decided on. */
export function previewed({ environments }: Stage, { proposalId }: Proposal): Promise<Proposal> {
  return eventually("the preview", async () => {
    const { proposal: seen } = await environments.getProposal({ proposalId });
    const state = seen?.preview?.state ?? Preview.UNSPECIFIED;
    if (seen === undefined || state === Preview.PENDING) return undefined;
    expect(state === Preview.READY, `it is ${Preview[state]} (${seen.preview?.failure ?? "no failure"})`);
    return seen;
  });
}

/** `address attribute before → after` of all that a proposal's preview shows. */
export function shownChanges({ preview }: Proposal): string {
  const changes = preview?.changes ?? [];
  return changes
    .flatMap(({ address, before = {}, after = {} }) =>
      Object.keys(after).map(
        (name) => `${address} ${name} ${JSON.stringify(before[name])} → ${JSON.stringify(after[name])}`,
      ),
    )
    .join("; ");
}

/** Accepts a proposal as it was reviewed, and resolves with it once its run is planned. */
export async function accepted({ environments }: Stage, reviewed: Proposal, reason: string): Promise<AcceptedProposal> {
  const { proposalId, digest } = reviewed;
  await environments.decideReconciliation({ proposalId, digest, decision: Decision.ACCEPT, reason });
  return eventually("ACCEPTED with its run", async () => {
    const { proposal } = await environments.getProposal({ proposalId });
    expect(proposal?.state !== ProposalState.FAILED, `it FAILED: ${proposal?.reason ?? "no reason"}`);
    const { provisioningRunId } = proposal ?? {};
    return proposal && provisioningRunId ? { ...proposal, provisioningRunId } : undefined;
  });
}

/** In production a proposal's run waits for another person, who approves its plan by its digest. */
export async function approvedAndApplied(
  stage: Stage,
  { provisioningRunId }: AcceptedProposal,
  reason: string,
): Promise<void> {
  const { planDigest = "" } = await runIn(stage, provisioningRunId, RunState.AWAITING_APPROVAL);
  await stage.approver.approveProvisioning({ provisioningRunId, planDigest, reason });
  await runIn(stage, provisioningRunId, RunState.APPLIED);
}

export type AcceptedProposal = Proposal & { provisioningRunId: string };
