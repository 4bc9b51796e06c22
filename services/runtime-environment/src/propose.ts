import { commit } from "@runtime-cloud/eventing/commit";
import { begin } from "@runtime-cloud/eventing/decision";
import { reconciliationProposal } from "@runtime-cloud/state-machines/reconciliation-proposal";
import type { Finding, Inventory, Proposal } from "../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "./context.ts";
import { transactionNow, secondsAfter } from "@runtime-cloud/eventing/database-clock";
import { advanceFinding, reopenFindings } from "./finding-transitions.ts";
import { proposalDigest } from "./fingerprint.ts";
import { endProposal } from "./proposal-transitions.ts";

/** The directions that a proposal can take. */
export type Direction = "REVERT_TO_SPECIFICATION" | "REFRESH_STATE";

/** What a proposal is to be made of: findings of one specification, each OPEN or covered by the undecided proposal. */
export interface Grouping {
  direction: Direction;
  specificationId: string;
  findings: readonly Finding[];
  undecided: Proposal | null;
}

/**
 * Makes a proposal of findings. It supersedes the undecided one, whose findings move into it; those that it leaves out
 * are OPEN again. The environment must be locked.
 */
export async function propose(unit: ServiceUnit, context: Context, inventory: Inventory, grouping: Grouping) {
  const { direction, specificationId, findings, undecided } = grouping;
  if (undecided) await endProposal(unit, undecided, { type: "supersede" });
  const proposedAt = await transactionNow(unit.tx);
  const expiresAt = secondsAfter(proposedAt, context.settings.PROPOSAL_EXPIRES_SECONDS);
  const row = {
    ...{ id: unit.newId(), tenantId: inventory.tenantId, projectId: inventory.projectId, environmentId: inventory.id },
    ...{
      specificationId,
      direction,
      destructive: isDestructive(direction, findings),
      digest: proposalDigest(grouping),
    },
    ...{
      findingIds: findings.map(({ id }) => id),
      proposedAt,
      expiresAt,
      provisioningRunId: null,
      decidedBy: null,
      decidedAt: null,
      reason: null,
    },
  };
  const proposal = await commit(unit, begin(reconciliationProposal, row), ({ state }) =>
    unit.tx.proposal.create({ data: { ...row, state } }),
  );
  for (const finding of findings) await advanceFinding(unit, finding, { type: "propose", proposalId: proposal.id });
  if (undecided) await reopenFindings(unit, undecided.id);
  unit.after(() => context.arm("proposal-expiry", expiresAt, { proposalId: proposal.id }));
  return proposal;
}

/** An estimate: reverting deletes what nobody declared; a refresh touches only what is known. */
function isDestructive(direction: Direction, findings: readonly Finding[]): boolean {
  return direction === "REVERT_TO_SPECIFICATION" && findings.some(({ kind }) => kind === "RESOURCE_UNMANAGED");
}
