import type { Context } from "../context.ts";
import { type Look, type Observation, ObservationFailed, type Observer, type Place } from "../observers/observer.ts";
import { untilAborted, withinTime } from "../observers/within-time.ts";
import { MAX_FAILURE } from "../inventory/world.ts";

/** What came of a look: an observation, or why there is none. */
export type Sight = { observer: string; at: Date } & ({ observation: Observation } | { failure: string });

/** How much longer than its time an observer is waited for: it may return half an answer at the last moment. */
const LINGER_MS = 500;

/**
 * Looks, outside of any transaction. A failing observer is a sight too, and so is one that doesn't answer in time,
 * whether or not it listens to its signal; an aborted look throws.
 */
export async function lookAt(context: Looking, observer: Observer, place: Place, look: Look): Promise<Sight> {
  look.signal?.throwIfAborted();
  const began = context.clock.now();
  try {
    const observation = await withinTime({ ...look, timeoutMs: look.timeoutMs + LINGER_MS }, async (signal) =>
      untilAborted(observer.observe(place, { ...look, signal }), signal),
    );
    return { observer: observer.name, at: observation.at, observation };
  } catch (err) {
    if (look.signal?.aborted) throw err;
    return { observer: observer.name, at: began, failure: explain(context, observer, place, err) };
  }
}

/** An observer that says why it couldn't look is no defect; anything else that it throws is. */
function explain({ logger }: Looking, observer: Observer, place: Place, err: unknown): string {
  const about = { environmentId: place.id, observer: observer.name };
  if (err instanceof ObservationFailed) {
    const failure = err.message.slice(0, MAX_FAILURE);
    logger.info({ ...about, failure }, "observer couldn't look");
    return failure;
  }
  logger.warn({ ...about, err }, "observer failed");
  return "internal error: the service's log has it";
}

type Looking = Pick<Context, "clock" | "logger">;
