import { commit } from "@runtime-cloud/eventing/commit";
import { accept } from "@runtime-cloud/eventing/decision";
import { driftFinding, type FindingEvent } from "@runtime-cloud/state-machines/drift-finding";
import type { Finding } from "../generated/prisma/client.ts";
import type { ServiceUnit } from "./context.ts";

export async function advanceFinding(unit: ServiceUnit, finding: Finding, event: FindingEvent): Promise<Finding> {
  return commit(unit, accept(driftFinding, finding, event), (columns) =>
    unit.tx.finding.update({
      where: { id: finding.id, version: finding.version },
      data: { ...columns, version: { increment: 1 } },
    }),
  );
}

/** The findings that a proposal still covers are OPEN again. */
export async function reopenFindings(unit: ServiceUnit, proposalId: string): Promise<void> {
  const covered = await unit.tx.finding.findMany({ where: { proposalId, state: "PROPOSED" } });
  for (const finding of covered) await advanceFinding(unit, finding, { type: "reopen" });
}
