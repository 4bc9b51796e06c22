import type { EngineEvent } from "../engine-event.ts";
import type { Observed } from "../engine.ts";
import { init } from "./terraform-command.ts";
import { terraformDrift } from "./terraform-drift.ts";
import { makePlan } from "./terraform-planning.ts";
import { sessionScrubber, type TerraformSession } from "./terraform-session.ts";
import { stateOutputs } from "./terraform-state.ts";

/** Refreshes in memory and tells what differs from the applied specification. Throws EngineStopped. */
export async function* observeTerraform(session: TerraformSession): AsyncGenerator<EngineEvent, Observed> {
  const { job, state, binary } = session;
  yield* init(session);
  const plan = yield* makePlan(session, []);
  const scrub = sessionScrubber(job, state, plan.secrets);
  return {
    result: "observed",
    engine: binary.version,
    state: state.identity,
    drift: terraformDrift(plan),
    resources: plan.resources,
    outputs: scrub.object(stateOutputs(state).outputs),
  };
}
