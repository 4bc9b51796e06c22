import { commit } from "@runtime-cloud/eventing/commit";
import { secondsAfter, transactionNow } from "@runtime-cloud/eventing/database-clock";
import { begin } from "@runtime-cloud/eventing/decision";
import { reconciliationProposal } from "@runtime-cloud/state-machines/reconciliation-proposal";
import type { Finding, Inventory, Proposal, ReconciliationDirection } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { advanceFindings, reopenFindings } from "../findings/finding-transitions.ts";
import { proposalDigest } from "./proposal-digest.ts";
import { type PreviewContents, previewColumn, refreshPreview } from "./proposal-preview.ts";
import { endProposal } from "./proposal-transitions.ts";

/** What a proposal is to be made of: findings of one specification, each OPEN or covered by the undecided proposal. */
export interface Grouping {
  direction: ReconciliationDirection;
  specificationId: string;
  findings: readonly Finding[];
  undecided: Proposal | null;
}

/**
 * Makes a proposal of findings. It supersedes the undecided one, whose findings move into it; those that it leaves out
 * are OPEN again. `preview` is what is known of what it would do; a revert's is planned. The environment must be locked.
 */
export async function propose(
  unit: ServiceUnit,
  context: Context,
  inventory: Inventory,
  { preview: given, ...grouping }: Grouping & { preview?: PreviewContents | undefined },
): Promise<Proposal> {
  const { direction, specificationId, findings, undecided } = grouping;
  const id = unit.newId();
  if (undecided) await endProposal(unit, undecided, { type: "supersede", by: id });
  const proposedAt = await transactionNow(unit.tx);
  const expiresAt = secondsAfter(proposedAt, context.settings.PROPOSAL_EXPIRES_SECONDS);
  const preview = direction === "REFRESH_STATE" ? refreshPreview(findings) : given;
  const row = {
    ...{ id, tenantId: inventory.tenantId, projectId: inventory.projectId, environmentId: inventory.id },
    ...{ specificationId, direction, destructive: isDestructive(grouping), proposedAt, expiresAt },
    ...{ digest: proposalDigest({ ...grouping, planDigest: null }), findingIds: findings.map((each) => each.id) },
    ...{ provisioningRunId: null, decidedBy: null, decidedAt: null, reason: null, adoptedId: null, supersededBy: null },
    ...{ previewState: previewState(preview), planDigest: null },
  };
  const shown = preview ? { preview: previewColumn(preview) } : { askAt: proposedAt };
  const proposal = await commit(unit, begin(reconciliationProposal, row), ({ state }) =>
    unit.tx.proposal.create({ data: { ...row, ...shown, state } }),
  );
  await advanceFindings(unit, findings, { type: "propose", proposalId: id });
  if (undecided) await reopenFindings(unit, undecided.id);
  unit.after(() => context.arm("proposal-expiry", expiresAt, { proposalId: id }));
  if (!preview) unit.after(() => context.arm("preview", proposedAt, { proposalId: id }));
  return proposal;
}

function previewState(preview: PreviewContents | undefined): Proposal["previewState"] {
  if (!preview) return "PENDING";
  return preview.failure === undefined ? "READY" : "FAILED";
}

/** An estimate, until the preview's plan is there: reverting deletes what nobody declared; nothing else touches it. */
function isDestructive({ direction, findings }: Grouping): boolean {
  return direction === "REVERT_TO_SPECIFICATION" && findings.some(({ kind }) => kind === "RESOURCE_UNMANAGED");
}
