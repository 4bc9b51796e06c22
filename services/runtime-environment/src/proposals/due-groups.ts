import { secondsAfter, transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { Finding, Inventory } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";
import { isReconcilable } from "../findings/finding-reconcilable.ts";
import { MAX_FINDINGS } from "./group-findings.ts";
import type { Grouping } from "./propose.ts";

/**
 * What an environment's configuration asks to be proposed now: of the groups in which nothing has changed for the delay,
 * the one that has been as it is for longest. What was decided against, has failed, or didn't help isn't proposed again
 * until something in its group moves. Undefined when there is nothing, or a proposal is under way.
 */
export async function dueGroup(tx: Tx, inventory: Inventory): Promise<Grouping | undefined> {
  const { id: environmentId, proposeAfterSeconds, proposeDirection: direction, grouping } = inventory;
  if (proposeAfterSeconds === null) return undefined;
  const underWay = { environmentId, state: { in: ["PROPOSED" as const, "ACCEPTING" as const, "ACCEPTED" as const] } };
  if ((await tx.proposal.count({ where: underWay })) > 0) return undefined;

  const open = await tx.finding.findMany({ where: { environmentId, state: "OPEN" }, orderBy: { id: "asc" } });
  const answered = await answeredFindings(tx, environmentId, open);
  const unchangedSince = secondsAfter(await transactionNow(tx), -proposeAfterSeconds);
  const due = groupsOf(open, grouping)
    .filter((group) => group.every(({ changedAt, vanishedAt }) => changedAt <= unchangedSince && vanishedAt === null))
    .filter((group) => group.some(({ id }) => !answered.has(id)))
    .sort((a, b) => lastChange(a) - lastChange(b));
  const findings = due[0]?.slice(0, MAX_FINDINGS);
  const specificationId = findings?.[0]?.specificationId;
  return findings && specificationId ? { direction, specificationId, findings, undecided: null } : undefined;
}

/** Findings about which somebody, or a run, has had the last word since they changed. */
async function answeredFindings(tx: Tx, environmentId: string, open: readonly Finding[]): Promise<ReadonlySet<string>> {
  const decided = await tx.proposal.findMany({
    where: {
      environmentId,
      state: { in: ["REJECTED", "FAILED", "COMPLETED"] },
      findingIds: { hasSome: open.map(({ id }) => id) },
    },
    select: { findingIds: true, endedAt: true },
  });
  const lastWord = new Map<string, number>();
  for (const { findingIds, endedAt } of decided) {
    for (const id of findingIds) lastWord.set(id, Math.max(lastWord.get(id) ?? 0, endedAt?.getTime() ?? 0));
  }
  return new Set(
    open.filter(({ id, changedAt }) => (lastWord.get(id) ?? 0) >= changedAt.getTime()).map(({ id }) => id),
  );
}

/** What a run can put right, by specification, or by resource of each. */
function groupsOf(open: readonly Finding[], grouping: Inventory["grouping"]): Finding[][] {
  const groups = new Map<string, Finding[]>();
  for (const finding of open.filter(({ kind }) => isReconcilable(kind))) {
    const { specificationId, resource } = finding;
    const key = grouping === "RESOURCE" ? `${specificationId} ${resource}` : specificationId;
    const group = groups.get(key);
    if (group) group.push(finding);
    else groups.set(key, [finding]);
  }
  return [...groups.values()];
}

function lastChange(group: readonly Finding[]): number {
  return Math.max(...group.map(({ changedAt }) => changedAt.getTime()));
}
