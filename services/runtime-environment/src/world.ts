import type { SpecificationKind } from "../generated/prisma/client.ts";
import type { Observation, ObservedComponent, ObservedResource, ObservedSpecification } from "./observers/observer.ts";

/** What is known of one environment, apart from its findings: its rows, or what an observation makes of them. */
export interface World {
  currentReleaseId: string | null;
  specifications: readonly TrackedVersions[];
  resources: readonly KnownResource[];
  components: readonly ReportedComponent[];
  reports: readonly Report[];
}

export interface TrackedVersions {
  kind: SpecificationKind;
  declaredVersion: number | null;
  declaredSpecificationId: string | null;
  appliedVersion: number | null;
  appliedSpecificationId: string | null;
}

export type KnownResource = ObservedResource & { kind: SpecificationKind };
export type ReportedComponent = ObservedComponent & { observer: string };

export interface Report {
  observer: string;
  /** When it last saw the environment. */
  observedAt: Date | null;
  /** Why its last look failed, wholly or in part. */
  failure: string | null;
}

/** An observation replaces what the same observer said before. What it couldn't inspect stays as it was known. */
export function takeIn(world: World, observer: string, { at, specifications, components }: Observation): World {
  const seen: World = {
    ...world,
    reports: replaceReport(world.reports, { observer, observedAt: at, failure: failureOf(specifications ?? []) }),
    components: replaceComponents(world.components, observer, { components, specifications }),
  };
  return specifications ? { ...seen, ...inspected(world, specifications) } : seen;
}

/** A look that failed says nothing about the world. */
export function failedLook(world: World, observer: string, failure: string): World {
  const before = world.reports.find((report) => report.observer === observer);
  const report = { observer, observedAt: before?.observedAt ?? null, failure };
  return { ...world, reports: replaceReport(world.reports, report) };
}

/** Why observers can't see all of an environment, or null when they do. */
export function observationFailure({ reports }: Pick<World, "reports">): string | null {
  const failures = reports.flatMap(({ observer, failure }) => (failure === null ? [] : [`${observer}: ${failure}`]));
  return failures.length > 0 ? failures.join("; ").slice(0, MAX_FAILURE) : null;
}

/** Longest text of a failure that is kept. */
export const MAX_FAILURE = 1_000;

function failureOf(specifications: readonly ObservedSpecification[]): string | null {
  const failures = specifications.flatMap(({ kind, failure }) => (failure === null ? [] : [`${kind}: ${failure}`]));
  return failures.length > 0 ? failures.join("; ").slice(0, MAX_FAILURE) : null;
}

function replaceReport(reports: readonly Report[], report: Report): Report[] {
  return [...reports.filter(({ observer }) => observer !== report.observer), report];
}

function replaceComponents(
  known: readonly ReportedComponent[],
  observer: string,
  {
    components,
    specifications = [],
  }: Pick<Observation, "components"> & { specifications: Observation["specifications"] },
): ReportedComponent[] {
  const seen = new Map(components.map((component) => [component.name, { ...component, observer }]));
  const partial = specifications.some(({ failure }) => failure !== null);
  const kept = known.filter((component) => component.observer !== observer || (partial && !seen.has(component.name)));
  return [...kept, ...seen.values()];
}

/** IaCProvisioningService is the authority on what is applied: a kind that it no longer names is no longer there. */
function inspected(world: World, specifications: readonly ObservedSpecification[]) {
  const unseen = specifications.filter(({ failure }) => failure !== null).map(({ kind }) => kind);
  const release = specifications.find(({ kind }) => kind === "RELEASE");
  return {
    currentReleaseId: release?.releaseId ?? null,
    specifications: trackedVersions(world.specifications, specifications),
    resources: [
      ...world.resources.filter(({ kind }) => unseen.includes(kind)),
      ...specifications.flatMap(({ kind, resources }) => resources.map((resource) => ({ ...resource, kind }))),
    ],
  };
}

function trackedVersions(
  tracked: readonly TrackedVersions[],
  specifications: readonly ObservedSpecification[],
): TrackedVersions[] {
  const gone = tracked.filter(({ kind }) => !specifications.some((specification) => specification.kind === kind));
  return [
    ...gone.map((versions) => ({ ...versions, appliedVersion: null, appliedSpecificationId: null })),
    ...specifications.map(({ kind, id, version }) => {
      const known = tracked.find((versions) => versions.kind === kind);
      const applied = { kind, appliedVersion: version, appliedSpecificationId: id };
      // What is applied was declared, whether or not that event has come yet.
      if (known?.declaredVersion && known.declaredVersion >= version) return { ...known, ...applied };
      return { ...applied, declaredVersion: version, declaredSpecificationId: id };
    }),
  ];
}
