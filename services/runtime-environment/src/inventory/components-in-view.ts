import { secondsAfter } from "@runtime-cloud/eventing/database-clock";
import { type Judgement, worst } from "./health.ts";
import { COUNT_NO_REPLICAS, ENGINE, type ObservedComponent } from "../observers/observer.ts";
import type { ReportedComponent, World } from "./world.ts";

/** Who is believed where several see the same one. A fixed order: the last to look would let it go to and fro. */
const believed: readonly string[] = ["kubernetes", "push", "http"];

/**
 * The components as of `at`, one of each name. Whoever saw one run within `staleAfterSeconds` is believed before the
 * engine, each in what it can tell; of several the worst health counts. A component that only a silent observer knows is
 * still there, and its health is UNKNOWN.
 */
export function componentsInView(
  { components, reports }: Pick<World, "components" | "reports">,
  { at, staleAfterSeconds }: { at: Date; staleAfterSeconds: number },
): ObservedComponent[] {
  const silent = new Set(
    reports
      .filter(({ observedAt }) => !observedAt || secondsAfter(observedAt, staleAfterSeconds) <= at)
      .map(({ observer }) => observer)
      .filter((observer) => observer !== ENGINE),
  );
  const named = new Map<string, ReportedComponent[]>();
  for (const component of components) {
    const others = named.get(component.name);
    if (others) others.push(component);
    else named.set(component.name, [component]);
  }
  const unheard = { health: "UNKNOWN" as const, healthReason: `nobody has seen it for ${staleAfterSeconds} s` };
  return [...named.values()]
    .flatMap((all) => inView(all, silent, unheard) ?? [])
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function inView(
  all: readonly ReportedComponent[],
  silent: ReadonlySet<string>,
  unheard: Judgement,
): ObservedComponent | undefined {
  const ranked = [...all].sort((a, b) => rankOf(a) - rankOf(b));
  const heard = ranked.filter(({ observer }) => !silent.has(observer));
  const claims = heard.length > 0 ? heard : ranked;
  const [first] = claims;
  if (!first) return undefined;
  const { replicasDesired, replicasReady } = claims.find(({ observer }) => !COUNT_NO_REPLICAS.has(observer)) ?? first;
  const { name } = first;
  const componentVersion = claims.find((claim) => claim.componentVersion !== "")?.componentVersion ?? "";
  const judgement = heard.length > 0 ? healthIn(heard) : unheard;
  return { name, componentVersion, replicasDesired, replicasReady, ...judgement };
}

/** The engine's word counts where nobody who sees it run makes a claim. */
function healthIn(heard: readonly ReportedComponent[]): Judgement {
  const claims = heard.filter(({ health }) => health !== "UNKNOWN");
  const running = claims.filter(({ observer }) => observer !== ENGINE);
  const counted = running.length > 0 ? running : claims.length > 0 ? claims : heard;
  const health = worst(counted.map((claim) => claim.health));
  return { health, healthReason: counted.find((claim) => claim.health === health)?.healthReason ?? null };
}

function rankOf({ observer }: ReportedComponent): number {
  if (observer === ENGINE) return believed.length + 1;
  const rank = believed.indexOf(observer);
  return rank < 0 ? believed.length : rank;
}
