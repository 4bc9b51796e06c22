import type { EngineEvent } from "../engine-event.ts";

/** Plays a verb to its end for its outcome alone. */
export async function playOut<Outcome>(verb: AsyncGenerator<EngineEvent, Outcome>): Promise<Outcome> {
  for (;;) {
    const step = await verb.next();
    if (step.done) return step.value;
  }
}
