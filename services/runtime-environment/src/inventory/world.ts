import type { SpecificationKind } from "../../generated/prisma/client.ts";
import { afterFailure, type Attempts, NO_FAILURES } from "../observing/observer-backoff.ts";
import type { Observation, ObservedComponent, ObservedResource, ObservedSpecification } from "../observers/observer.ts";
import { keepUnseen } from "../observers/keep-unseen.ts";
import { healthReasonOf } from "./health.ts";
import { resourcesDigest } from "./resource-differences.ts";

/**
 * What is known of one environment, apart from its findings: its rows, or what an observation makes of them. Of its
 * resources it has digests, since they are many and seldom move.
 */
export interface World {
  currentReleaseId: string | null;
  specifications: readonly TrackedVersions[];
  components: readonly ReportedComponent[];
  reports: readonly Report[];
}

export interface TrackedVersions {
  kind: SpecificationKind;
  declaredVersion: number | null;
  declaredSpecificationId: string | null;
  appliedVersion: number | null;
  appliedSpecificationId: string | null;
  /** When it became known that it is applied: what was seen before was another one. Null: before anybody looked. */
  appliedAt: Date | null;
  /** How many resources were seen, and their digest; null before the first look. */
  resourceCount: number;
  resourcesDigest: string | null;
}

export type KnownResource = ObservedResource & { kind: SpecificationKind };
export type ReportedComponent = ObservedComponent & { observer: string };

export interface Report extends Attempts {
  observer: string;
  /** When it last saw the environment. */
  observedAt: Date | null;
  /** Why its last look failed, wholly or in part. */
  failure: string | null;
}

/**
 * An observation replaces what the same observer said before. What it couldn't inspect stays as it was known. One that
 * has seen a part hasn't failed: it comes with the next look.
 */
export function takeIn(world: World, observer: string, observation: Observation): World {
  const { at, specifications } = observation;
  const failure = failureOf(observation);
  const report = { observer, observedAt: at, failure, ...NO_FAILURES };
  const seen: World = {
    ...world,
    reports: replaceReport(world.reports, report),
    components: replaceComponents(world.components, observer, { ...observation, ...(failure !== null && { failure }) }),
  };
  return specifications ? { ...seen, ...inspected(world, specifications, at) } : seen;
}

/** A look that failed says nothing about the world. `jitter` is the back-off's, from 0 to 1. */
export function failedLook(world: World, observer: string, { failure, at, jitter }: FailedLook): World {
  const before = reportOf(world, observer);
  const attempts = afterFailure({ failures: before?.failures ?? 0 }, at, jitter);
  const report = { observer, observedAt: before?.observedAt ?? null, failure, ...attempts };
  return { ...world, reports: replaceReport(world.reports, report) };
}

export function reportOf({ reports }: Pick<World, "reports">, observer: string): Report | undefined {
  return reports.find((report) => report.observer === observer);
}

/** Why observers can't see all of an environment, or null when they do. */
export function observationFailure({ reports }: Pick<World, "reports">): string | null {
  const failures = reports.flatMap(({ observer, failure }) => (failure === null ? [] : [`${observer}: ${failure}`]));
  return failures.length > 0 ? failures.sort().join("; ").slice(0, MAX_FAILURE) : null;
}

/** Longest text of a failure that is kept. */
export const MAX_FAILURE = 1_000;

function failureOf({ failure, specifications = [] }: Observation): string | null {
  const failures = [
    ...(failure === undefined ? [] : [failure]),
    ...specifications.flatMap((each) => (each.failure === null ? [] : [`${each.kind}: ${each.failure}`])),
  ];
  return failures.length > 0 ? failures.join("; ").slice(0, MAX_FAILURE) : null;
}

function replaceReport(reports: readonly Report[], report: Report): Report[] {
  return [...reports.filter(({ observer }) => observer !== report.observer), report];
}

function replaceComponents(
  known: readonly ReportedComponent[],
  observer: string,
  observation: Pick<Observation, "components" | "failure" | "unseen">,
): ReportedComponent[] {
  const own = known.filter((component) => component.observer === observer);
  const seen = new Map(keepUnseen(own, observation).map((component) => [component.name, component]));
  return [
    ...known.filter((component) => component.observer !== observer),
    ...[...seen.values()].map((component) => reported(component, observer)),
  ];
}

/** As its row is. */
function reported(component: ObservedComponent, observer: string): ReportedComponent {
  const { name, componentVersion, replicasDesired, replicasReady, health } = component;
  const { healthUrl = null, versionUrl = null } = component;
  const healthReason = healthReasonOf(component, observer);
  const its = { name, componentVersion, replicasDesired, replicasReady, health, healthReason, healthUrl, versionUrl };
  return { observer, ...its };
}

/** IaCProvisioningService is the authority on what is applied: a kind that it no longer names is no longer there. */
function inspected(world: World, specifications: readonly ObservedSpecification[], at: Date) {
  const release = specifications.find(({ kind }) => kind === "RELEASE");
  return {
    currentReleaseId: release?.releaseId ?? null,
    specifications: trackedVersions(world.specifications, specifications, at),
  };
}

function trackedVersions(
  tracked: readonly TrackedVersions[],
  specifications: readonly ObservedSpecification[],
  at: Date,
): TrackedVersions[] {
  const gone = tracked.filter(({ kind }) => !specifications.some((specification) => specification.kind === kind));
  return [
    ...gone.map((versions) => ({ ...versions, ...NOT_APPLIED })),
    ...specifications.map((specification) => {
      const { kind, id, version } = specification;
      const known = tracked.find((versions) => versions.kind === kind);
      const resources = specification.failure === null ? countResources(specification) : resourcesOf(known);
      const appliedAt = known && isOther(known, version) ? at : (known?.appliedAt ?? null);
      const applied = { kind, appliedVersion: version, appliedSpecificationId: id, appliedAt, ...resources };
      // What is applied was declared, whether or not that event has come yet.
      if (known?.declaredVersion && known.declaredVersion >= version) return { ...known, ...applied };
      return { ...applied, declaredVersion: version, declaredSpecificationId: id };
    }),
  ];
}

type Resources = Pick<TrackedVersions, "resourceCount" | "resourcesDigest">;
const NO_RESOURCES: Resources = { resourceCount: 0, resourcesDigest: null };
const NOT_APPLIED = { appliedVersion: null, appliedSpecificationId: null, appliedAt: null, ...NO_RESOURCES };

/** Another version than the one that was known to be applied. */
function isOther({ appliedVersion }: TrackedVersions, version: number): boolean {
  return appliedVersion !== null && appliedVersion !== version;
}

function countResources({ resources }: ObservedSpecification): Resources {
  return { resourceCount: resources.length, resourcesDigest: resourcesDigest(resources) };
}

function resourcesOf(known: TrackedVersions | undefined): Resources {
  return known ? { resourceCount: known.resourceCount, resourcesDigest: known.resourcesDigest } : NO_RESOURCES;
}

interface FailedLook {
  failure: string;
  at: Date;
  jitter: number;
}
