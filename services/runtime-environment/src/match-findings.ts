import { isDeepStrictEqual } from "node:util";
import type { Finding, SpecificationKind } from "../generated/prisma/client.ts";
import { fingerprintOf } from "./fingerprint.ts";
import type { ObservedDrift, ObservedSpecification } from "./observers/observer.ts";

/** A drifted fact and where it was seen. */
export interface Sighting {
  fingerprint: string;
  specificationKind: SpecificationKind;
  specificationId: string;
  drift: ObservedDrift;
}

export interface Matched {
  /** Seen for the first time, or again after it was resolved. */
  appeared: Sighting[];
  /** Seen again as it was. */
  again: Finding[];
  /** Seen again with another value, or against another specification: no longer what somebody reviewed. */
  moved: { finding: Finding; sighting: Sighting }[];
  /** Not seen by an inspection that would have seen them. */
  vanished: Finding[];
}

/** Sorts an environment's unresolved findings by what an inspection saw. What it couldn't inspect is left alone. */
export function matchFindings(
  environmentId: string,
  known: readonly Finding[],
  specifications: readonly ObservedSpecification[],
): Matched {
  const sightings = sightingsOf(environmentId, specifications);
  const failed = specifications.filter(({ failure }) => failure !== null).map(({ kind }) => kind);
  const isKnown = new Set(known.map(({ fingerprint }) => fingerprint));
  const matched: Matched = { again: [], moved: [], vanished: [], appeared: [] };
  for (const finding of known) {
    const sighting = sightings.get(finding.fingerprint);
    if (!sighting) {
      if (!failed.includes(finding.specificationKind)) matched.vanished.push(finding);
    } else if (isSame(finding, sighting)) matched.again.push(finding);
    else matched.moved.push({ finding, sighting });
  }
  matched.appeared = [...sightings.values()].filter(({ fingerprint }) => !isKnown.has(fingerprint));
  return matched;
}

function sightingsOf(environmentId: string, specifications: readonly ObservedSpecification[]): Map<string, Sighting> {
  const sightings = specifications.flatMap(({ kind: specificationKind, id: specificationId, drift: all }) =>
    all.map((drift) => {
      const fingerprint = fingerprintOf(environmentId, specificationKind, drift);
      return [fingerprint, { fingerprint, specificationKind, specificationId, drift }] as const;
    }),
  );
  return new Map(sightings);
}

function isSame(finding: Finding, { specificationId, drift }: Sighting): boolean {
  return finding.specificationId === specificationId && isDeepStrictEqual(finding.observed, drift.observed);
}
