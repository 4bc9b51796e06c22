import { commit } from "@runtime-cloud/eventing/commit";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { accept } from "@runtime-cloud/eventing/decision";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { type ProposalEvent, reconciliationProposal } from "@runtime-cloud/state-machines/reconciliation-proposal";
import type { Prisma, Proposal } from "../../generated/prisma/client.ts";
import type { ServiceUnit, Tx } from "../context.ts";
import { reopenFindings } from "../findings/finding-transitions.ts";
import { lockEnvironment } from "../inventory/inventory.ts";

/** Locks the proposal's environment, and so the proposal. */
export async function lockProposal(tx: Tx, { id, tenantId }: Identity): Promise<Proposal> {
  const found = await tx.proposal.findFirst({ where: { id, tenantId }, select: { environmentId: true } });
  if (!found) throw unknownProposal(id);
  await lockEnvironment(tx, { id: found.environmentId, tenantId });
  return tx.proposal.findUniqueOrThrow({ where: { id } });
}

export function unknownProposal(id: string): NotFound {
  return new NotFound(`proposal ${id} does not exist`);
}

export async function advanceProposal(
  unit: ServiceUnit,
  proposal: Proposal,
  event: ProposalEvent,
  also: Prisma.ProposalUncheckedUpdateInput = {},
): Promise<Proposal> {
  return commit(unit, accept(reconciliationProposal, proposal, event), (columns) =>
    unit.tx.proposal.update({
      where: { id: proposal.id, version: proposal.version },
      data: { ...also, ...columns, version: { increment: 1 } },
    }),
  );
}

/** Takes a proposal to a final state. The next observation closes its findings, or opens them again. */
export async function endProposal(unit: ServiceUnit, proposal: Proposal, event: ProposalEvent): Promise<Proposal> {
  const endedAt = await transactionNow(unit.tx);
  return advanceProposal(unit, proposal, event, { endedAt, askAt: null });
}

/** Takes a proposal to a final state in which nothing was reconciled: its findings are OPEN again. */
export async function endWithoutEffect(unit: ServiceUnit, proposal: Proposal, event: ProposalEvent): Promise<Proposal> {
  const ended = await endProposal(unit, proposal, event);
  await reopenFindings(unit, proposal.id);
  return ended;
}

/** The environment's proposal that waits for its decision: there is one at most. */
export async function undecidedProposal(
  { tx }: Pick<ServiceUnit, "tx">,
  environmentId: string,
): Promise<Proposal | null> {
  return tx.proposal.findFirst({ where: { environmentId, state: "PROPOSED" } });
}

interface Identity {
  id: string;
  tenantId: string;
}
