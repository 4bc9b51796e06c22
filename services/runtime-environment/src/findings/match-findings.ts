import { isDeepStrictEqual } from "node:util";
import type { Finding, SpecificationKind } from "../../generated/prisma/client.ts";
import { fingerprintOf } from "./fingerprint.ts";
import type { ObservedDrift } from "../observers/observer.ts";

/** A drifted fact, who saw it and against which specification. */
export interface Sighting {
  fingerprint: string;
  observer: string;
  specificationKind: SpecificationKind;
  specificationId: string;
  drift: ObservedDrift;
}

/** What a look says about drift. */
export interface DriftSeen {
  sightings: readonly Sighting[];
  /** Whether it would have seen the drift of a known finding. About the others it says nothing. */
  wouldSee(finding: Finding): boolean;
}

export interface Matched {
  /** Seen for the first time, or again after it was resolved. */
  appeared: readonly Sighting[];
  /** Seen again as it was. */
  again: readonly Finding[];
  /** Seen again as it was, after it had stayed away for less than the delay. */
  returned: readonly Seen[];
  /** Seen again with another value, or against another specification: no longer what somebody reviewed. */
  moved: readonly Seen[];
  /** Not seen by a look that would have seen it. */
  unseen: readonly Finding[];
}

export interface Seen {
  finding: Finding;
  sighting: Sighting;
}

/** A sighting with its fingerprint. */
export function sightingOf(environmentId: string, seen: Omit<Sighting, "fingerprint">): Sighting {
  return { ...seen, fingerprint: fingerprintOf({ environmentId, ...seen }) };
}

/** Sorts an environment's unresolved findings by what a look saw. What it couldn't see is left alone. */
export function matchFindings(known: readonly Finding[], { sightings, wouldSee }: DriftSeen): Matched {
  const byFingerprint = new Map(sightings.map((sighting) => [sighting.fingerprint, sighting]));
  const again: Finding[] = [];
  const returned: Seen[] = [];
  const moved: Seen[] = [];
  const unseen: Finding[] = [];
  for (const finding of known) {
    const sighting = byFingerprint.get(finding.fingerprint);
    if (!sighting) {
      if (wouldSee(finding)) unseen.push(finding);
    } else if (!isSame(finding, sighting)) moved.push({ finding, sighting });
    else if (finding.vanishedAt) returned.push({ finding, sighting });
    else again.push(finding);
  }
  const isKnown = new Set(known.map(({ fingerprint }) => fingerprint));
  const appeared = [...byFingerprint.values()].filter(({ fingerprint }) => !isKnown.has(fingerprint));
  return { appeared, again, returned, moved, unseen };
}

function isSame(finding: Finding, { specificationId, drift }: Sighting): boolean {
  return finding.specificationId === specificationId && isDeepStrictEqual(finding.observed, drift.observed);
}
