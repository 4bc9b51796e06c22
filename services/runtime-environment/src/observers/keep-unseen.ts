import type { Observation, ObservedComponent } from "./observer.ts";

const NOT_SEEN = "the last look didn't see it";

/**
 * An observer's components after it looked, given those that it `known` before. What a half answer leaves out stays
 * there, its health UNKNOWN; of a component that was seen in part the version that was known stays.
 */
export function keepUnseen<Known extends ObservedComponent>(
  known: readonly Known[],
  { components, failure, unseen }: Pick<Observation, "components" | "failure" | "unseen">,
): (Known | ObservedComponent)[] {
  const before = new Map(known.map((component) => [component.name, component]));
  const missed = new Set(unseen);
  const seen = components.map((component) => {
    const isPartial = component.componentVersion === "" && missed.has(component.name);
    const componentVersion = isPartial ? before.get(component.name)?.componentVersion : undefined;
    return componentVersion === undefined ? component : { ...component, componentVersion };
  });
  for (const { name } of components) before.delete(name);
  const isKept = ({ name }: Known) => (unseen ? missed.has(name) : failure !== undefined);
  const kept = [...before.values()].filter(isKept);
  return [...seen, ...kept.map((component) => ({ ...component, health: "UNKNOWN" as const, healthReason: NOT_SEEN }))];
}
