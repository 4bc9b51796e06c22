import { commitAll } from "@runtime-cloud/eventing/commit-all";
import { accept, begin } from "@runtime-cloud/eventing/decision";
import { compiledBeginning } from "@runtime-cloud/state-machines/compiled";
import { driftFinding } from "@runtime-cloud/state-machines/drift-finding";
import { UNBORN } from "@runtime-cloud/state-machines/lifecycle-edges";
import type { Inventory, SuppressionRule } from "../../generated/prisma/client.ts";
import type { ServiceUnit } from "../context.ts";
import { insertFindings } from "./finding-rows.ts";
import { decideFinding } from "./finding-transitions.ts";
import type { Sighting } from "./match-findings.ts";
import { severityOf } from "./severity.ts";
import { ruleFor, silencedBy } from "../suppression/suppression-match.ts";

const beginFinding = compiledBeginning(driftFinding);

/**
 * Opens a finding for each sighting, in two statements; one that a rule silences is born SUPPRESSED and announces
 * nothing. Each refers to the finding that was resolved before, if the same drift has come back. Those that are OPEN.
 */
export async function openFindings(
  unit: ServiceUnit,
  inventory: Inventory,
  { sightings, rules, at, changedAt }: Opening,
): Promise<readonly Sighting[]> {
  if (sightings.length === 0) return [];
  const previous = await resolvedBefore(unit, inventory.id, sightings);
  const born = sightings.map((sighting) => {
    const first = firstRow(inventory, sighting, { at, changedAt, previous });
    const row = { ...first, id: unit.newId() };
    const rule = ruleFor(rules, row);
    const accepted = rule
      ? { ...accept(driftFinding, { ...row, state: "OPEN" }, silencedBy(rule), decideFinding), from: UNBORN }
      : begin(driftFinding, row, beginFinding);
    return { accepted, sighting, row: { ...row, ...accepted.patch, state: accepted.state } };
  });
  const all = born.map(({ accepted }) => accepted);
  const rows = born.map(({ row }) => row);
  await commitAll(unit, all, () => insertFindings(unit.tx, rows));
  return born.filter(({ row }) => row.state === "OPEN").map(({ sighting }) => sighting);
}

function firstRow(inventory: Inventory, sighting: Sighting, { at, changedAt, previous }: First) {
  const { fingerprint, observer, specificationKind, specificationId, drift } = sighting;
  const { tenantId, projectId, id: environmentId } = inventory;
  return {
    ...{ version: 0, tenantId, projectId, environmentId, fingerprint, observer, specificationKind, specificationId },
    ...drift,
    ...{ severity: severityOf(drift, inventory.class), firstSeenAt: at, lastSeenAt: at, occurrences: 1 },
    ...{ changedAt, vanishedAt: null, previousFindingId: previous.get(fingerprint) ?? null },
    ...{ proposalId: null, suppressedReason: null, suppressedUntil: null, suppressionRuleId: null, resolvedAt: null },
  };
}

/** The last resolved finding of each sighting's drift, by fingerprint. */
async function resolvedBefore(
  { tx }: ServiceUnit,
  environmentId: string,
  sightings: readonly Sighting[],
): Promise<ReadonlyMap<string, string>> {
  const fingerprints = sightings.map(({ fingerprint }) => fingerprint);
  const found = await tx.$queryRaw<{ fingerprint: string; id: string }[]>`
    SELECT DISTINCT ON (fingerprint) fingerprint, id::text AS id FROM finding
    WHERE environment_id = ${environmentId} AND fingerprint = ANY (${fingerprints}::text[])
    ORDER BY fingerprint, id DESC`;
  return new Map(found.map(({ fingerprint, id }) => [fingerprint, id]));
}

interface Opening {
  sightings: readonly Sighting[];
  /** The environment's rules that hold now. */
  rules: readonly SuppressionRule[];
  /** When the look began. */
  at: Date;
  changedAt: Date;
}

type First = Pick<Opening, "at" | "changedAt"> & { previous: ReadonlyMap<string, string> };
