import { describe, expect, test } from "@jest/globals";
import { componentDrift, driftAfterInspection } from "@runtime-cloud/runtime-environment/findings/component-drift";
import type { Sighting } from "@runtime-cloud/runtime-environment/findings/match-findings";
import type { ReportedComponent, World } from "@runtime-cloud/runtime-environment/inventory/world";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { Finding } from "../../../services/runtime-environment/generated/prisma/client.ts";

const environmentId = "env";
const specificationId = uuidv7();
const at = new Date(0);
const later = new Date(1_000);

const component = (observer: string, changes: Partial<ReportedComponent> = {}): ReportedComponent => ({
  observer,
  name: "web",
  componentVersion: "1.4.0",
  replicasDesired: 3,
  replicasReady: 3,
  health: "HEALTHY",
  ...changes,
});
const release = (changes: { appliedSpecificationId?: string | null; appliedAt?: Date } = {}) => ({
  kind: "RELEASE" as const,
  declaredVersion: 1,
  declaredSpecificationId: specificationId,
  appliedVersion: 1,
  appliedSpecificationId: specificationId,
  appliedAt: null,
  resourceCount: 0,
  resourcesDigest: null,
  ...changes,
});
const report = (observer: string) => ({ observer, observedAt: at, failure: null, failures: 0, retryAt: null });
const worldOf = (components: readonly ReportedComponent[], changes: Partial<World> = {}): World => ({
  currentReleaseId: null,
  specifications: [release()],
  components,
  reports: ["engine", ...new Set(components.map(({ observer }) => observer))].map(report),
  ...changes,
});
const findingOf = ({ drift, ...seen }: Sighting): Finding => ({
  ...{ ...seen, ...drift, id: uuidv7(), version: 0, state: "OPEN", tenantId: "t", projectId: "p", environmentId },
  ...{ observed: drift.observed, declared: drift.declared, firstSeenAt: at, lastSeenAt: at, changedAt: at },
  ...{ vanishedAt: null, occurrences: 1, severity: "HIGH", previousFindingId: null, suppressionRuleId: null },
  ...{ proposalId: null, suppressedReason: null, suppressedUntil: null, resolvedAt: null },
});
const drifts = (observer: string, world: World, { known = world, findings = [] }: Before = {}) =>
  componentDrift(observer, { environmentId, known, world, findings }).sightings;
interface Before {
  known?: World;
  findings?: readonly Finding[];
}
const facts = (sightings: readonly Sighting[]) =>
  sightings.map(({ drift: { kind, declared, observed } }) => [kind, declared, observed]);

describe("what an observer sees beside what was applied", () => {
  test("another version, other replicas and bad health are one drift each, of the applied release", () => {
    const seen = component("kubernetes", { componentVersion: "1.3.9", replicasDesired: 1, health: "DEGRADED" });
    const sightings = drifts("kubernetes", worldOf([component("engine"), seen]));
    expect(facts(sightings)).toEqual([
      ["VERSION_MISMATCH", "1.4.0", "1.3.9"],
      ["REPLICA_MISMATCH", 3, 1],
      ["HEALTH_DEGRADED", "HEALTHY", "DEGRADED"],
    ]);
    expect(sightings[0]).toMatchObject({
      observer: "kubernetes",
      specificationKind: "RELEASE",
      specificationId,
      drift: { resource: "component/web", attribute: "version" },
    });
  });

  test.each([
    ["it is as it was applied", {}],
    ["it comes up", { health: "PROGRESSING" }],
    ["its version and health aren't known", { componentVersion: "", health: "UNKNOWN" }],
    ["an agent names no replicas", { replicasDesired: 0, replicasReady: 0 }],
  ] as const)("nothing drifts while %s", (_, changes) => {
    expect(drifts("push", worldOf([component("engine"), component("push", changes)]))).toEqual([]);
  });

  test("an observer that counts no replicas tells nothing of them", () => {
    const seen = component("http", { replicasDesired: 0, replicasReady: 0 });
    expect(drifts("http", worldOf([component("engine"), seen]))).toEqual([]);
  });

  test("a component that nothing applied names doesn't drift", () => {
    expect(drifts("push", worldOf([component("engine"), component("push", { name: "other" })]))).toEqual([]);
  });

  test("two observers that see the same are told apart", () => {
    const old = { componentVersion: "1.3.9" };
    const world = worldOf([component("engine"), component("http", old), component("push", old)]);
    expect(drifts("http", world)[0]?.fingerprint).not.toBe(drifts("push", world)[0]?.fingerprint);
  });

  test("nothing is said until the applied specification is known, and seen by the engine", () => {
    const seen = [component("engine"), component("push", { componentVersion: "1.3.9" })];
    const undeclared = release({ appliedSpecificationId: null });
    expect(drifts("push", worldOf(seen, { specifications: [undeclared] }))).toEqual([]);
    const uninspected = release({ appliedAt: later });
    expect(drifts("push", worldOf(seen, { specifications: [uninspected] }))).toEqual([]);
  });
});

describe("a component that Kubernetes no longer lists", () => {
  const before = worldOf([component("engine"), component("kubernetes")]);
  const gone = worldOf([component("engine")], { reports: ["engine", "kubernetes"].map(report) });

  test("is missing, and stays so while it is not back", () => {
    const missing = drifts("kubernetes", gone, { known: before });
    expect(facts(missing)).toEqual([
      ["REPLICA_MISMATCH", 3, 0],
      ["HEALTH_DEGRADED", "HEALTHY", "MISSING"],
    ]);
    expect(drifts("kubernetes", gone, { findings: missing.map(findingOf) })).toEqual(missing);
  });

  test("is none of its own if it never was there, or if another observer no longer names it", () => {
    expect(drifts("kubernetes", gone)).toEqual([]);
    expect(drifts("push", gone, { known: worldOf([component("engine"), component("push")]) })).toEqual([]);
  });
});

describe("which findings have vanished", () => {
  const old = component("http", { componentVersion: "1.3.9", health: "DEGRADED" });
  const drifted = worldOf([component("engine"), old]);
  const [version, health] = drifts("http", drifted).map(findingOf);
  if (!version || !health) throw new Error("two facts drift");
  const findings = [version, health];
  const vanished = (observer: string, world: World) => {
    const { sightings, wouldSee } = componentDrift(observer, { environmentId, known: drifted, world, findings });
    const seen = sightings.map(({ fingerprint }) => fingerprint);
    return findings
      .filter((finding) => !seen.includes(finding.fingerprint) && wouldSee(finding))
      .map(({ kind }) => kind);
  };

  test("those that their observer sees as they were applied", () => {
    expect(vanished("http", worldOf([component("engine"), component("http")]))).toEqual([version.kind, health.kind]);
    expect(vanished("http", drifted)).toEqual([]);
  });

  test("none of another observer's, nor of what it couldn't tell, nor of a component that it left out", () => {
    expect(vanished("push", worldOf([component("engine"), component("push")]))).toEqual([]);
    const unsure = component("http", { componentVersion: "", health: "HEALTHY" });
    expect(vanished("http", worldOf([component("engine"), unsure]))).toEqual([health.kind]);
    expect(vanished("http", worldOf([component("engine")]))).toEqual([]);
  });

  test("all, once nothing is applied or the component is applied no longer", () => {
    expect(vanished("http", worldOf([old], { specifications: [] }))).toEqual([version.kind, health.kind]);
    expect(vanished("http", worldOf([component("engine", { name: "api" }), old]))).toEqual([version.kind, health.kind]);
  });

  test("by the engine's look: those that the apply has overtaken, and those whose observer looks no more", () => {
    const overtaken = (world: World) => {
      const { wouldSee } = driftAfterInspection({ environmentId, known: drifted, world, findings });
      return findings.filter(wouldSee).map(({ kind }) => kind);
    };
    expect(overtaken(drifted)).toEqual([]);
    expect(overtaken(worldOf([component("engine", { componentVersion: "1.3.9" }), old]))).toEqual([version.kind]);
    expect(overtaken({ ...drifted, components: [component("engine")], reports: [report("engine")] })).toEqual([
      version.kind,
      health.kind,
    ]);
  });
});

describe("what the engine's look opens", () => {
  const old = { componentVersion: "1.3.9" };
  const opened = (world: World) => {
    const { sightings } = driftAfterInspection({ environmentId, known: world, world, findings: [] });
    return sightings.map(({ observer, drift }) => [observer, drift.kind]);
  };
  const inspected = { specifications: [release({ appliedAt: later })] };
  const engine = { ...report("engine"), observedAt: later };

  test("what others saw first, while nobody had told them what is applied", () => {
    expect(opened(worldOf([component("engine"), component("http", old)]))).toEqual([["http", "VERSION_MISMATCH"]]);
  });

  test("nothing of what was seen before the apply", () => {
    const before = worldOf([component("engine"), component("http", old)], inspected);
    expect(opened({ ...before, reports: [engine, report("http")] })).toEqual([]);
    expect(opened({ ...before, reports: [engine, { ...report("http"), observedAt: later }] })).toEqual([
      ["http", "VERSION_MISMATCH"],
    ]);
  });

  test("nothing that an agent saw by its own clock", () => {
    expect(opened(worldOf([component("engine"), component("push", old)]))).toEqual([]);
  });
});
