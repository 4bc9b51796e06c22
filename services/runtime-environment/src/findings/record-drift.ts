import { secondsAfter, transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { Finding, Inventory } from "../../generated/prisma/client.ts";
import { type Compared, componentDrift, driftAfterInspection } from "./component-drift.ts";
import type { ServiceUnit } from "../context.ts";
import { engineDrift } from "./engine-drift.ts";
import { openFindings } from "./finding-opening.ts";
import { countAgain, updateSeen } from "./finding-rows.ts";
import { advanceFindings, MAX_AT_ONCE } from "./finding-transitions.ts";
import { settleUnseen } from "./finding-vanishing.ts";
import type { Sight } from "../observing/look.ts";
import { type DriftSeen, type Matched, matchFindings, type Seen } from "./match-findings.ts";
import type { Observation } from "../observers/observer.ts";
import { settleProposal } from "../proposals/settle-proposal.ts";
import { severityOf } from "./severity.ts";
import { rulesHolding, suppressMatching } from "../suppression/suppression-holding.ts";
import type { World } from "../inventory/world.ts";
import type { KnownWorld } from "../inventory/world-rows.ts";

/** How often findings that are seen again as they were are counted: their occurrences and lastSeenAt lag by as much. */
const COUNT_EVERY_SECONDS = 60;

/**
 * Brings an environment's findings up to what one observer saw: opens, counts, resolves; and its undecided proposal,
 * which new drift supersedes and vanished drift makes obsolete. A look that failed says nothing. The environment must be
 * locked.
 *
 * True when there was more than one look takes: the next one goes on.
 */
export async function recordDrift(
  unit: ServiceUnit,
  inventory: Inventory,
  { known, world, sight }: Taken,
): Promise<boolean> {
  if (!("observation" in sight)) return false;
  const { id: environmentId } = inventory;
  const { observer, at, observation } = sight;
  const findings = known.unresolved > 0 ? await unresolved(unit, environmentId) : [];
  const seen = driftSeen({ environmentId, known, world, findings, observer, observation });
  if (findings.length + seen.sightings.length === 0) return false;

  const all = matchFindings(findings, seen);
  const matched = atMost(all);
  const now = await transactionNow(unit.tx);
  await countSeen(unit, matched.again, at);
  await noteMoved(unit, inventory, { seen: [...matched.moved, ...matched.returned], at, changedAt: now });
  await settleUnseen(unit, inventory, { unseen: matched.unseen, world, at, now });
  const opened = await openAndSuppress(unit, inventory, { matched, at, now });
  await reopenUnclosed(unit, environmentId, { findings: seenAsTheyWere(matched), at });
  const isCovered = findings.some(({ state }) => state === "PROPOSED");
  if (isCovered || opened.length > 0) await settleProposal(unit, environmentId, { opened, moved: matched.moved });
  return hasMore(all);
}

/** What one observer's look says of drift. */
export function driftSeen({ observer, observation, ...compared }: Look): DriftSeen {
  const { specifications } = observation;
  if (!specifications) return componentDrift(observer, compared);
  const engine = engineDrift(compared.environmentId, specifications);
  const components = driftAfterInspection(compared);
  const wouldSee = (finding: Finding) => engine.wouldSee(finding) || components.wouldSee(finding);
  return { sightings: [...engine.sightings, ...components.sightings], wouldSee };
}

async function unresolved({ tx }: ServiceUnit, environmentId: string): Promise<Finding[]> {
  return tx.finding.findMany({ where: { environmentId, state: { not: "RESOLVED" } }, orderBy: { id: "asc" } });
}

/** What costs rows of its own is bounded; the others are counted in one statement. */
function atMost({ again, ...all }: Matched): Matched {
  const first = <T>(some: readonly T[]) => some.slice(0, MAX_AT_ONCE);
  const { appeared, returned, moved, unseen } = all;
  return {
    again,
    appeared: first(appeared),
    returned: first(returned),
    moved: first(moved),
    unseen: first(unseen),
  };
}

function hasMore({ appeared, returned, moved, unseen }: Matched): boolean {
  return [appeared, returned, moved, unseen].some(({ length }) => length > MAX_AT_ONCE);
}

async function countSeen({ tx }: ServiceUnit, again: readonly Finding[], at: Date): Promise<void> {
  if (!again.some(({ lastSeenAt }) => secondsAfter(lastSeenAt, COUNT_EVERY_SECONDS) <= at)) return;
  const ids = again.map(({ id }) => id);
  await countAgain(tx, ids, at);
}

async function noteMoved({ tx }: ServiceUnit, inventory: Inventory, { seen, ...instants }: Moved): Promise<void> {
  const rows = seen.map(({ finding: { id }, sighting: { specificationId, drift } }) => {
    const { declared, observed } = drift;
    return { id, specificationId, declared, observed, severity: severityOf(drift, inventory.class) };
  });
  await updateSeen(tx, rows, instants);
}

/** Opens what appeared, and suppresses what a rule silences: of it, and of what is OPEN in spite of it. */
async function openAndSuppress(unit: ServiceUnit, inventory: Inventory, { matched, at, now }: Opening) {
  const { appeared, again, returned, moved } = matched;
  const open = [...again, ...[...returned, ...moved].map(({ finding }) => finding)].filter(isOpen);
  if (appeared.length + open.length === 0) return [];
  const rules = await rulesHolding(unit, inventory.id, now);
  const opened = await openFindings(unit, inventory, { sightings: appeared, rules, at, changedAt: now });
  await suppressMatching(unit, open, rules);
  return opened;
}

function isOpen({ state }: Finding): boolean {
  return state === "OPEN";
}

function seenAsTheyWere({ again, returned }: Matched): Finding[] {
  return [...again, ...returned.map(({ finding }) => finding)];
}

/** A run was applied and the drift is still there: whoever proposed it has to look again. */
async function reopenUnclosed(unit: ServiceUnit, environmentId: string, { findings, at }: Unclosed): Promise<void> {
  const covered = findings.filter(({ state }) => state === "PROPOSED");
  if (covered.length === 0) return;
  const proposals = [...new Set(covered.flatMap(({ proposalId }) => proposalId ?? []))];
  const completed = await unit.tx.proposal.findMany({
    where: { environmentId, id: { in: proposals }, state: "COMPLETED", endedAt: { lte: at } },
    select: { id: true },
  });
  const unclosed = covered.filter(({ proposalId }) => completed.some(({ id }) => id === proposalId));
  await advanceFindings(unit, unclosed.slice(0, MAX_AT_ONCE), { type: "reopen" });
}

/** What one observer's sight makes of what was known. */
interface Taken {
  known: KnownWorld;
  world: World;
  sight: Sight;
}

type Look = Compared & { observer: string; observation: Observation };

interface Moved {
  seen: readonly Seen[];
  at: Date;
  changedAt: Date;
}

interface Opening {
  matched: Matched;
  at: Date;
  now: Date;
}

interface Unclosed {
  findings: readonly Finding[];
  at: Date;
}
