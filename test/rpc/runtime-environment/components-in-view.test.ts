import { expect, test } from "@jest/globals";
import { componentsInView } from "@runtime-cloud/runtime-environment/inventory/components-in-view";
import type { ReportedComponent } from "@runtime-cloud/runtime-environment/inventory/world";

const at = new Date("2026-11-30T12:00:00.000Z");
const secondsAgo = (seconds: number) => new Date(at.getTime() - seconds * 1_000);
const component = (observer: string, changes: Partial<ReportedComponent> = {}): ReportedComponent => ({
  observer,
  name: "api",
  componentVersion: "1.4.0",
  replicasDesired: 3,
  replicasReady: 3,
  health: "HEALTHY",
  healthUrl: null,
  versionUrl: null,
  ...changes,
});
const unsaid = { componentVersion: "", replicasDesired: 0, replicasReady: 0 };
const view = (components: readonly ReportedComponent[], silent: readonly string[] = []) => {
  const reports = [...new Set(components.map(({ observer }) => observer))].map((observer) => ({
    observer,
    observedAt: secondsAgo(silent.includes(observer) ? 300 : 1),
    failure: null,
    failures: 0,
    retryAt: null,
  }));
  return componentsInView({ components, reports }, { at, staleAfterSeconds: 300 });
};

test("whoever sees a component run is believed before the engine that applied it", () => {
  const healthReason = "Deployment api: 1 of 3 replicas ready";
  const seen = { componentVersion: "1.3.9", replicasReady: 1, health: "DEGRADED", healthReason } as const;
  const running = component("kubernetes", seen);
  expect(view([component("engine"), running])).toEqual([
    { name: "api", componentVersion: "1.3.9", replicasDesired: 3, replicasReady: 1, health: "DEGRADED", healthReason },
  ]);
});

test("what an observer can't tell is taken from the next one", () => {
  const http = component("http", { ...unsaid, health: "DEGRADED" });
  expect(view([component("engine"), http])).toMatchObject([
    { componentVersion: "1.4.0", replicasDesired: 3, replicasReady: 3, health: "DEGRADED" },
  ]);
  expect(view([component("engine"), component("http", { ...unsaid, health: "UNKNOWN" })])).toMatchObject([
    { health: "HEALTHY" },
  ]);
});

test("of several who see it run the worst health counts, and the same one's word, whoever was last", () => {
  const kubernetes = component("kubernetes", { componentVersion: "1.4.0" });
  const push = component("push", { componentVersion: "1.3.9", replicasReady: 2, health: "PROGRESSING" });
  const healthReason = "GET /healthz answered 500";
  const http = component("http", { ...unsaid, health: "DEGRADED", healthReason });
  const expected = { componentVersion: "1.4.0", replicasReady: 3, health: "DEGRADED", healthReason };
  expect(view([http, push, kubernetes])).toMatchObject([expected]);
  expect(view([kubernetes, http, push])).toMatchObject([expected]);
});

test("a silent observer's word gives way to the engine's, and its own components are UNKNOWN", () => {
  const push = component("push", { componentVersion: "1.3.9", health: "DEGRADED" });
  expect(view([component("engine"), push], ["push"])).toMatchObject([{ componentVersion: "1.4.0", health: "HEALTHY" }]);
  expect(view([push], ["push"])).toMatchObject([
    { componentVersion: "1.3.9", health: "UNKNOWN", healthReason: "nobody has seen it for 300 s" },
  ]);
});
