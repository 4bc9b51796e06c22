import { DecideReconciliationRequest_Decision as Decision } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import type { Proposal } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit, Tx } from "../context.ts";
import { nextAsk } from "./next-ask.ts";
import { proposalDigest } from "./proposal-digest.ts";
import { advanceProposal, endWithoutEffect, lockProposal } from "./proposal-transitions.ts";

/** Accepts or rejects a proposal as it was reviewed. Accepted, it is ACCEPTING until its run is planned. */
export async function decideProposal(unit: ServiceUnit, context: Context, verdict: Verdict): Promise<Proposal> {
  const { digest, by, reason } = verdict;
  const proposal = await lockProposal(unit.tx, verdict);
  // One that is decided already says so, whatever digest is named.
  if (proposal.state === "PROPOSED" && digest !== proposal.digest) {
    throw new InvalidInput([{ field: "digest", description: await whyAnother(unit.tx, proposal, digest) }]);
  }
  const at = await transactionNow(unit.tx);
  const decided = { at, by, digest, reason };
  if (verdict.decision === Decision.REJECT) return endWithoutEffect(unit, proposal, { type: "reject", ...decided });
  const askAt = nextAsk(at, 0);
  unit.after(() => context.arm("acceptance", askAt, { proposalId: proposal.id }));
  return advanceProposal(unit, proposal, { type: "accept", ...decided }, { askAt, asks: 0 });
}

async function whyAnother(tx: Tx, proposal: Proposal, digest: string): Promise<string> {
  const { id, findingIds, planDigest } = proposal;
  const wayOut = "read it again by GetProposal and decide on what it says";
  if (planDigest !== null) {
    const findings = await tx.finding.findMany({ where: { id: { in: findingIds } } });
    const before = proposalDigest({ ...proposal, findings, planDigest: null });
    if (digest === before) {
      return `moved when the preview of proposal ${id} was there, for it says now what the run would do: ${wayOut}`;
    }
  }
  return `is not the digest of proposal ${id}: ${wayOut}`;
}

interface Verdict {
  id: string;
  tenantId: string;
  decision: Decision;
  digest: string;
  by: string;
  reason: string | null;
}
