import type { EngineEvent } from "./engine-event.ts";
import type { DriftEntry, Observed } from "./engine.ts";
import { init } from "./terraform-command.ts";
import { observedResources, terraformDrift } from "./terraform-drift.ts";
import { makePlan } from "./terraform-planning.ts";
import { planSecrets } from "./terraform-plan-projection.ts";
import { sessionScrubber, type TerraformSession } from "./terraform-session.ts";
import { stateOutputs } from "./terraform-state.ts";

/** Refreshes in memory and tells what differs from the applied specification. Throws EngineStopped. */
export async function* observeTerraform(session: TerraformSession): AsyncGenerator<EngineEvent, Observed> {
  const { job, state, binary } = session;
  yield* init(session);
  const plan = yield* makePlan(session, []);
  const scrub = sessionScrubber(job, state, planSecrets(plan));
  return {
    result: "observed",
    engine: binary.version,
    state: state.identity,
    drift: terraformDrift(plan).map((entry): DriftEntry => ({
      ...entry,
      before: scrub.json(entry.before),
      after: scrub.json(entry.after),
    })),
    resources: observedResources(plan).map(({ id, attributes, ...resource }) => ({
      ...resource,
      id: scrub.text(id),
      attributes: scrub.object(attributes),
    })),
    outputs: scrub.object(stateOutputs(state).outputs),
  };
}
