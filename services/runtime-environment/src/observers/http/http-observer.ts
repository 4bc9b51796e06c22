import type { Clock } from "@runtime-cloud/service-kit/clock";
import { observationOf } from "../half-answer.ts";
import { askComponent } from "./http-component.ts";
import { type HttpAccess, systemResolve } from "./http-get.ts";
import { inTurns } from "../in-turns.ts";
import { MAX_COMPONENTS, type ObservedComponent, type Observer } from "../observer.ts";
import type { HttpComponent, HttpSettings } from "../observer-settings.ts";
import { withinTime } from "../within-time.ts";

/** How many components one look asks side by side. */
const CONCURRENCY = 16;
/** The part of a look's time that asking may take, so that half an answer is had before the time is over. */
const ASKING_SHARE = 0.9;

/**
 * Asks components for their health and version: those of its settings, and those that `applied` names a URL for. It
 * sees one component where several replicas answer, so it counts none. A component that doesn't answer in HTTP isn't
 * seen, and named in the failure; when none answers, the look has failed.
 */
export function httpObserver({ settings, applied, clock, rule, resolve = systemResolve }: HttpObserving): Observer {
  const components = componentsToAsk(settings, applied);
  return {
    name: "http",
    async observe(_environment, look) {
      const at = clock.now();
      const rounds = Math.max(1, Math.ceil(components.length / CONCURRENCY));
      // Components that hang don't take the time of those that are asked after them.
      const timeoutMs = Math.min(settings.timeoutMs, (look.timeoutMs * ASKING_SHARE) / rounds);
      const asked = await withinTime(look, (signal) =>
        inTurns(components, CONCURRENCY, (component) => askComponent(component, { rule, resolve, signal, timeoutMs })),
      );
      look.signal?.throwIfAborted();
      return observationOf(at, asked);
    },
  };
}

/** The settings come first where both name a component. */
function componentsToAsk(settings: HttpSettings, applied: readonly AppliedComponent[]): HttpComponent[] {
  const byName = new Map<string, HttpComponent>();
  for (const { name, healthUrl, versionUrl } of applied) {
    if (!healthUrl && !versionUrl) continue;
    byName.set(name, { name, healthUrl: healthUrl ?? "", versionUrl: versionUrl ?? "", versionField: "" });
  }
  for (const component of settings.components) byName.set(component.name, component);
  return [...byName.values()].slice(0, MAX_COMPONENTS);
}

/** A component as the engine reports it. */
type AppliedComponent = Pick<ObservedComponent, "name" | "healthUrl" | "versionUrl">;

interface HttpObserving {
  settings: HttpSettings;
  applied: readonly AppliedComponent[];
  clock: Clock;
  rule: HttpAccess["rule"];
  resolve?: HttpAccess["resolve"];
}
