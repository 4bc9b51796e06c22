import type { ServiceUnit } from "../context.ts";
import { isReconcilable } from "../findings/finding-reconcilable.ts";
import type { Seen, Sighting } from "../findings/match-findings.ts";
import { endProposal, endWithoutEffect, undecidedProposal } from "./proposal-transitions.ts";

/**
 * Ends an environment's undecided proposal when it no longer says what there is to decide: new drift that a run could
 * close, or a value that moved, supersedes it; the end of all its drift makes it obsolete. Call it last.
 */
export async function settleProposal(unit: ServiceUnit, environmentId: string, { opened, moved }: News): Promise<void> {
  const undecided = await undecidedProposal(unit, environmentId);
  if (!undecided) return;
  const reviewedMoved = moved.some(({ finding }) => finding.proposalId === undecided.id);
  if (reviewedMoved || opened.some(({ drift }) => isReconcilable(drift.kind))) {
    await endWithoutEffect(unit, undecided, { type: "supersede" });
    return;
  }
  const left = await unit.tx.finding.count({ where: { proposalId: undecided.id, state: "PROPOSED" } });
  if (left === 0) await endProposal(unit, undecided, { type: "lapse" });
}

interface News {
  /** What was opened, and not silenced by a rule. */
  opened: readonly Sighting[];
  moved: readonly Seen[];
}
