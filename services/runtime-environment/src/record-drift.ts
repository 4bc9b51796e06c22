import { commit } from "@runtime-cloud/eventing/commit";
import { begin } from "@runtime-cloud/eventing/decision";
import { driftFinding } from "@runtime-cloud/state-machines/drift-finding";
import { type Finding, type Inventory } from "../generated/prisma/client.ts";
import type { ServiceUnit } from "./context.ts";
import { advanceFinding } from "./finding-transitions.ts";
import { jsonColumn } from "./json-column.ts";
import { type Matched, matchFindings, type Sighting } from "./match-findings.ts";
import type { ObservedSpecification } from "./observers/observer.ts";
import { endProposal, endWithoutEffect, undecidedProposal } from "./proposal-transitions.ts";

/** How many findings one observation opens, changes, reopens or resolves, so that its transaction ends soon. */
const MAX_EACH = 50;

/**
 * Brings an environment's findings up to what an inspection saw at `at`: opens, counts, resolves; and its undecided
 * proposal, which new drift supersedes and vanished drift makes obsolete. The environment must be locked.
 *
 * True when there was more than one observation takes: the next one goes on.
 */
export async function recordDrift(
  unit: ServiceUnit,
  inventory: Inventory,
  { at, specifications }: { at: Date; specifications: readonly ObservedSpecification[] },
): Promise<boolean> {
  const known = await unit.tx.finding.findMany({
    where: { environmentId: inventory.id, state: { not: "RESOLVED" } },
    orderBy: { id: "asc" },
  });
  const all = matchFindings(inventory.id, known, specifications);
  const [appeared, moved, vanished] = [atMost(all.appeared), atMost(all.moved), atMost(all.vanished)];
  await countAgain(unit, { again: all.again, moved }, at);
  for (const finding of vanished) await advanceFinding(unit, finding, { type: "resolve", at });
  for (const sighting of appeared) await open(unit, inventory, sighting, at);
  await reopenUnclosed(unit, inventory, { findings: all.again, at });
  await settleProposal(unit, inventory, { appeared, moved });
  return [all.appeared, all.moved, all.vanished].some(({ length }) => length > MAX_EACH);
}

function atMost<T>(all: readonly T[]): readonly T[] {
  return all.slice(0, MAX_EACH);
}

async function countAgain({ tx }: ServiceUnit, { again, moved }: Seen, lastSeenAt: Date): Promise<void> {
  await tx.finding.updateMany({
    where: { id: { in: again.map(({ id }) => id) } },
    data: { occurrences: { increment: 1 }, lastSeenAt },
  });
  for (const { finding, sighting } of moved) {
    const { specificationId, drift } = sighting;
    const values = { declared: jsonColumn(drift.declared), observed: jsonColumn(drift.observed) };
    const data = { specificationId, ...values, occurrences: { increment: 1 }, lastSeenAt };
    await tx.finding.update({ where: { id: finding.id }, data });
  }
}

async function open(unit: ServiceUnit, inventory: Inventory, sighting: Sighting, at: Date): Promise<Finding> {
  const { fingerprint, specificationKind, specificationId, drift } = sighting;
  const { tenantId, projectId, id: environmentId } = inventory;
  const row = {
    ...{ id: unit.newId(), tenantId, projectId, environmentId, fingerprint, specificationKind, specificationId },
    ...{ kind: drift.kind, resource: drift.resource, attribute: drift.attribute, firstSeenAt: at, lastSeenAt: at },
    ...{ proposalId: null, suppressedReason: null, suppressedUntil: null, resolvedAt: null },
  };
  const values = { declared: jsonColumn(drift.declared), observed: jsonColumn(drift.observed) };
  return commit(unit, begin(driftFinding, row), ({ state }) =>
    unit.tx.finding.create({ data: { ...row, ...values, state } }),
  );
}

/** A run was applied and the drift is still there: whoever proposed it has to look again. */
async function reopenUnclosed(unit: ServiceUnit, inventory: Inventory, { findings, at }: Unclosed): Promise<void> {
  const covered = findings.filter(({ state }) => state === "PROPOSED");
  const completed = await unit.tx.proposal.findMany({
    where: {
      environmentId: inventory.id,
      id: { in: covered.flatMap(({ proposalId }) => proposalId ?? []) },
      state: "COMPLETED",
      endedAt: { lte: at },
    },
    select: { id: true },
  });
  const unclosed = covered.filter(({ proposalId }) => completed.some(({ id }) => id === proposalId));
  for (const finding of atMost(unclosed)) await advanceFinding(unit, finding, { type: "reopen" });
}

async function settleProposal(unit: ServiceUnit, inventory: Inventory, { appeared, moved }: Drifted): Promise<void> {
  const undecided = await undecidedProposal(unit, inventory.id);
  if (!undecided) return;
  const reviewedMoved = moved.some(({ finding }) => finding.proposalId === undecided.id);
  if (appeared.length > 0 || reviewedMoved) {
    await endWithoutEffect(unit, undecided, { type: "supersede" });
    return;
  }
  const left = await unit.tx.finding.count({ where: { proposalId: undecided.id, state: "PROPOSED" } });
  if (left === 0) await endProposal(unit, undecided, { type: "lapse" });
}

type Seen = { readonly [K in "again" | "moved"]: Readonly<Matched[K]> };
type Drifted = { readonly [K in "appeared" | "moved"]: Readonly<Matched[K]> };

interface Unclosed {
  findings: readonly Finding[];
  at: Date;
}
