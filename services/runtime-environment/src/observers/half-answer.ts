import { inShort } from "./in-short.ts";
import { type Observation, ObservationFailed, type ObservedComponent } from "./observer.ts";

/** One component that was asked for. */
export interface Asked {
  name: string;
  /** Unset: it wasn't seen. */
  component?: ObservedComponent;
  /** Part of it, or all of it, wasn't seen. */
  partial?: boolean;
  /** Why, if that is something to tell. */
  failure?: string;
}

/** What all that were asked make together: what was seen, and what not. Throws ObservationFailed when none was seen. */
export function observationOf(at: Date, asked: readonly Asked[]): Observation {
  const components = asked.flatMap(({ component }) => component ?? []);
  const failures = asked.flatMap(({ name, failure }) => (failure === undefined ? [] : [`${name}: ${failure}`]));
  if (components.length === 0 && failures.length > 0) throw new ObservationFailed(inShort(failures));
  const unseen = asked.filter(({ partial }) => partial).map(({ name }) => name);
  return {
    at,
    components,
    ...(failures.length > 0 && { failure: inShort(failures) }),
    ...(unseen.length > 0 && { unseen }),
  };
}
