import { type DriftSeen, sightingOf } from "./match-findings.ts";
import { ENGINE, type ObservedSpecification } from "../observers/observer.ts";

/**
 * The drift that the engine's inspection saw. A kind of specification that it couldn't inspect says nothing; one that
 * it no longer names isn't applied any more, so nothing drifts from it.
 */
export function engineDrift(environmentId: string, specifications: readonly ObservedSpecification[]): DriftSeen {
  const failed = specifications.filter(({ failure }) => failure !== null).map(({ kind }) => kind);
  return {
    sightings: specifications.flatMap(({ kind: specificationKind, id: specificationId, drift: all }) =>
      all.map((drift) => sightingOf(environmentId, { observer: ENGINE, specificationKind, specificationId, drift })),
    ),
    wouldSee: ({ observer, specificationKind }) => observer === ENGINE && !failed.includes(specificationKind),
  };
}
