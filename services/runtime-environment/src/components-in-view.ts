import { secondsAfter } from "@runtime-cloud/eventing/database-clock";
import type { ObservedComponent } from "./observers/observer.ts";
import type { ReportedComponent, World } from "./world.ts";

/** The observer that knows components from what was applied; the others see them run. */
const ENGINE = "engine";

/**
 * The components as of `at`, one of each name. Whoever saw one run within `staleAfterSeconds` is believed first, then
 * the engine. A component that only a silent observer knows is still there, and its health is UNKNOWN.
 */
export function componentsInView(
  { components, reports }: Pick<World, "components" | "reports">,
  { at, staleAfterSeconds }: { at: Date; staleAfterSeconds: number },
): ObservedComponent[] {
  const silent = reports.filter(({ observedAt }) => !observedAt || secondsAfter(observedAt, staleAfterSeconds) <= at);
  const isSilent = ({ observer }: ReportedComponent) =>
    observer !== ENGINE && silent.some((report) => report.observer === observer);
  const inView = new Map<string, ObservedComponent>();
  // The later overwrites the earlier.
  for (const component of components.filter(isSilent)) inView.set(component.name, { ...component, health: "UNKNOWN" });
  for (const component of components.filter(({ observer }) => observer === ENGINE))
    inView.set(component.name, component);
  for (const component of components.filter((seen) => seen.observer !== ENGINE && !isSilent(seen))) {
    inView.set(component.name, component);
  }
  return [...inView.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
