import { commit } from "@runtime-cloud/eventing/commit";
import { commitAll } from "@runtime-cloud/eventing/commit-all";
import { accept } from "@runtime-cloud/eventing/decision";
import { compiled } from "@runtime-cloud/state-machines/compiled";
import { driftFinding, type FindingEvent } from "@runtime-cloud/state-machines/drift-finding";
import type { Finding } from "../../generated/prisma/client.ts";
import type { ServiceUnit } from "../context.ts";
import { updateFindings } from "./finding-rows.ts";

/** The most findings that one transaction opens, moves or ends, so that it ends soon itself. */
export const MAX_AT_ONCE = 1_000;

/** What the machine decides, for many findings at once: compiled, a thousand take milliseconds. */
export const decideFinding = compiled(driftFinding);

export async function advanceFinding(unit: ServiceUnit, finding: Finding, event: FindingEvent): Promise<Finding> {
  return commit(unit, accept(driftFinding, finding, event), (columns) =>
    unit.tx.finding.update({
      where: { id: finding.id, version: finding.version },
      data: { ...columns, version: { increment: 1 } },
    }),
  );
}

/** The same event for many findings, by two statements. Their environment must be locked. */
export async function advanceFindings(
  unit: ServiceUnit,
  findings: readonly Finding[],
  event: FindingEvent,
): Promise<void> {
  const moves = findings.map((finding) => ({ finding, event }));
  await advanceEach(unit, moves);
}

/** An event of its own for each of many findings, by two statements. Their environment must be locked. */
export async function advanceEach(unit: ServiceUnit, moves: readonly FindingMove[]): Promise<void> {
  const advanced = moves.map(({ finding, event }) => {
    const accepted = accept(driftFinding, finding, event, decideFinding);
    const { patch, state } = accepted;
    return { accepted, row: { ...finding, ...patch, state, version: finding.version + 1 } };
  });
  const all = advanced.map(({ accepted }) => accepted);
  const rows = advanced.map(({ row }) => row);
  await commitAll(unit, all, () => updateFindings(unit.tx, rows));
}

export interface FindingMove {
  finding: Finding;
  event: FindingEvent;
}

/** The findings that a proposal still covers are OPEN again. One that vanished meanwhile is RESOLVED instead. */
export async function reopenFindings(unit: ServiceUnit, proposalId: string): Promise<void> {
  const covered = await unit.tx.finding.findMany({ where: { proposalId, state: "PROPOSED" } });
  const moves = covered.map((finding) => ({
    finding,
    event: finding.vanishedAt ? { type: "resolve" as const, at: unit.at } : { type: "reopen" as const },
  }));
  await advanceEach(unit, moves);
}
