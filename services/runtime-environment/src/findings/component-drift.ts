import type { DriftKind, Finding, SpecificationKind } from "../../generated/prisma/client.ts";
import { type DriftSeen, type Sighting, sightingOf } from "./match-findings.ts";
import { COUNT_NO_REPLICAS, ENGINE, type ObservedComponent, type ObservedDrift } from "../observers/observer.ts";
import { type ReportedComponent, reportOf, type TrackedVersions, type World } from "../inventory/world.ts";

/** The observer that lists all there is: what it has seen once and no longer lists is missing. */
const LISTS_ALL = "kubernetes";
/** Reports what an agent saw, at the time of the agent's clock. */
const AGENT = "push";

/** What is known of one environment before and after a look, and its findings that aren't resolved. */
export interface Compared {
  environmentId: string;
  known: World;
  world: World;
  findings: readonly Finding[];
}

/**
 * How the components that `observer` has just seen differ from those that are applied, as the engine last said. What it
 * doesn't know of a component (no version, UNKNOWN health, replicas that it doesn't count) and components that it
 * doesn't name say nothing: their findings stay. So do all from a new apply until the engine has seen it.
 */
export function componentDrift(observer: string, compared: Compared): DriftSeen {
  const { environmentId, known, world, findings } = compared;
  const specification = componentSpecification(world);
  if (specification === "unknown") return { sightings: [], wouldSee: () => false };
  const isIts = (finding: Finding) => finding.observer === observer;
  if (specification === "none") return { sightings: [], wouldSee: isIts };
  const applied = componentsOf(world, ENGINE);
  const seen = componentsOf(world, observer);
  const wasSeen = (name: string) =>
    componentsOf(known, observer).has(name) ||
    findings.some((finding) => isIts(finding) && finding.resource === resourceOf(name));
  const facts = [...applied.values()].flatMap((component) => {
    const { name } = component;
    const isMissing = observer === LISTS_ALL && !seen.has(name) && wasSeen(name);
    const there = seen.get(name) ?? (isMissing ? missing(component) : undefined);
    return there ? factsOf(component, { ...there, observer }) : [];
  });
  const names = new Set([...applied.keys()].map(resourceOf));
  return {
    sightings: facts
      .filter(({ declared, observed }) => declared !== observed)
      .map((drift) => sightingOf(environmentId, { observer, ...specification, drift })),
    wouldSee: (finding) =>
      isIts(finding) && (!names.has(finding.resource) || facts.some((fact) => isAbout(finding, fact))),
  };
}

/**
 * What the engine's look says of components: how what is applied now differs from what the others have seen since it
 * is. Of what they saw before the apply, only that a drift is over: what is applied now is what was seen, or is applied
 * no longer. An observer that has no report looks no more, so its drift is over too.
 */
export function driftAfterInspection(compared: Compared): DriftSeen {
  const { world } = compared;
  const others = world.reports.map(({ observer }) => observer).filter((observer) => observer !== ENGINE);
  const seen = new Map(others.map((observer) => [observer, componentDrift(observer, compared)]));
  const differing = [...seen.values()].flatMap(({ sightings }) => sightings);
  const differs = new Set(differing.map(({ fingerprint }) => fingerprint));
  return {
    sightings: differing.filter(({ observer }) => hasSeenApplied(world, observer)),
    wouldSee(finding) {
      if (finding.observer === ENGINE || differs.has(finding.fingerprint)) return false;
      return seen.get(finding.observer)?.wouldSee(finding) ?? true;
    },
  };
}

/** Whether an observer has looked since the specification is applied. An agent's clock is none to compare with ours. */
function hasSeenApplied(world: World, observer: string): boolean {
  const observedAt = reportOf(world, observer)?.observedAt ?? null;
  const appliedAt = declaringVersions(world)?.appliedAt ?? null;
  return observer !== AGENT && observedAt !== null && (appliedAt === null || observedAt >= appliedAt);
}

/** What an observer knows of a component beside what was applied, whether or not the two are equal. */
function factsOf(applied: ObservedComponent, seen: ReportedComponent): ObservedDrift[] {
  const fact = (kind: DriftKind, attribute: string, declared: string | number, observed: string | number) => ({
    kind,
    resource: resourceOf(applied.name),
    attribute,
    declared,
    observed,
  });
  const facts: ObservedDrift[] = [];
  if (applied.componentVersion !== "" && seen.componentVersion !== "") {
    facts.push(fact("VERSION_MISMATCH", "version", applied.componentVersion, seen.componentVersion));
  }
  if (knowsReplicas(applied, seen)) {
    facts.push(fact("REPLICA_MISMATCH", "replicas", applied.replicasDesired, seen.replicasDesired));
  }
  if (seen.health !== "UNKNOWN") facts.push(fact("HEALTH_DEGRADED", "health", "HEALTHY", wellOr(seen.health)));
  return facts;
}

/** Nobody declares 0 replicas: it stands for none named. Only an observer that lists all can tell 0 from unsaid. */
function knowsReplicas(applied: ObservedComponent, seen: ReportedComponent): boolean {
  if (COUNT_NO_REPLICAS.has(seen.observer) || applied.replicasDesired === 0) return false;
  return seen.replicasDesired > 0 || seen.observer === LISTS_ALL;
}

/** A component that comes up is no drift. */
function wellOr(health: ObservedComponent["health"]): string {
  return health === "PROGRESSING" ? "HEALTHY" : health;
}

function missing({ name, componentVersion }: ObservedComponent): ObservedComponent {
  return { name, componentVersion, replicasDesired: 0, replicasReady: 0, health: "MISSING" };
}

/** Where components are declared: in the release, as long as one is applied. */
const declaring: readonly SpecificationKind[] = ["RELEASE", "BASELINE", "WORKER_POOL"];

/** What components are compared with: unknown until its declaration was told, and the engine has seen it applied. */
function componentSpecification(world: World): Against | "none" | "unknown" {
  const versions = declaringVersions(world);
  if (!versions) return "none";
  const { kind: specificationKind, appliedSpecificationId: specificationId, appliedAt } = versions;
  const inspectedAt = reportOf(world, ENGINE)?.observedAt ?? null;
  const isInspected = inspectedAt !== null && (appliedAt === null || inspectedAt >= appliedAt);
  return specificationId !== null && isInspected ? { specificationId, specificationKind } : "unknown";
}

function declaringVersions({ specifications }: World): TrackedVersions | undefined {
  const applied = specifications.filter(({ appliedVersion }) => appliedVersion !== null);
  const kind = declaring.find((each) => applied.some((versions) => versions.kind === each));
  return applied.find((versions) => versions.kind === kind);
}

type Against = Pick<Sighting, "specificationId" | "specificationKind">;

function componentsOf({ components }: World, observer: string): ReadonlyMap<string, ReportedComponent> {
  const its = components.filter((component) => component.observer === observer);
  return new Map(its.map((component) => [component.name, component]));
}

function resourceOf(name: string): string {
  return `component/${name}`;
}

function isAbout(finding: Finding, { resource, attribute }: ObservedDrift): boolean {
  return finding.resource === resource && finding.attribute === attribute;
}
