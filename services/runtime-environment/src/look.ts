import type { Context } from "./context.ts";
import { type Look, type Observation, ObservationFailed, type Observer, type Place } from "./observers/observer.ts";
import { MAX_FAILURE } from "./world.ts";

/** What came of a look: an observation, or why there is none. */
export type Sight = { observer: string; at: Date } & ({ observation: Observation } | { failure: string });

/** Looks, outside of any transaction. A failing observer is a sight too; an aborted look throws. */
export async function lookAt(context: Context, observer: Observer, place: Place, look: Look): Promise<Sight> {
  look.signal?.throwIfAborted();
  const began = context.clock.now();
  try {
    const observation = await observer.observe(place, look);
    return { observer: observer.name, at: observation.at, observation };
  } catch (err) {
    if (look.signal?.aborted) throw err;
    context.logger.warn({ err, environmentId: place.id, observer: observer.name }, "observer failed");
    const failure = err instanceof ObservationFailed ? err.message : "internal error: the service's log has it";
    return { observer: observer.name, at: began, failure: failure.slice(0, MAX_FAILURE) };
  }
}
