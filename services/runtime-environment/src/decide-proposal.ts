import { DecideReconciliationRequest_Decision as Decision } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import type { Proposal } from "../generated/prisma/client.ts";
import { nextAsk } from "./accepted-proposal.ts";
import type { Context, ServiceUnit } from "./context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { advanceProposal, endWithoutEffect, lockProposal } from "./proposal-transitions.ts";

/** Accepts or rejects a proposal as it was reviewed. Accepted, it is ACCEPTING until its run is planned. */
export async function decideProposal(unit: ServiceUnit, context: Context, verdict: Verdict): Promise<Proposal> {
  const { digest, by, reason } = verdict;
  const proposal = await lockProposal(unit.tx, verdict);
  if (digest !== proposal.digest) {
    const description = `is not the digest of proposal ${proposal.id}: read it again by GetProposal and decide on what it says`;
    throw new InvalidInput([{ field: "digest", description }]);
  }
  const at = await transactionNow(unit.tx);
  const decided = { at, by, digest, reason };
  if (verdict.decision === Decision.REJECT) return endWithoutEffect(unit, proposal, { type: "reject", ...decided });
  const askAt = nextAsk(at, 0);
  unit.after(() => context.arm("acceptance", askAt, { proposalId: proposal.id }));
  return advanceProposal(unit, proposal, { type: "accept", ...decided }, { askAt });
}

interface Verdict {
  id: string;
  tenantId: string;
  decision: Decision;
  digest: string;
  by: string;
  reason: string | null;
}
