import type { ProvisioningRun } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventually } from "./eventually.ts";
import { StoryFailed } from "./narrator.ts";
import type { Stage } from "./stage.ts";

const NEVER_LEFT = [RunState.FAILED, RunState.PARTIALLY_APPLIED, RunState.INDETERMINATE, RunState.SUPERSEDED];

/** The first run of an environment that has just begun. */
export function onlyRun(stage: Stage, environmentId: string): Promise<ProvisioningRun> {
  return newestRun(stage, environmentId, () => true);
}

/** The environment's newest run that fits. */
export function newestRun(
  stage: Stage,
  environmentId: string,
  fits: (run: ProvisioningRun) => boolean,
): Promise<ProvisioningRun> {
  return eventually("a run of the environment", async () => {
    const { runs } = await stage.provisioning.listProvisioningRuns({ environmentId });
    return runs.find(fits);
  });
}

/** Waits until a run is in `state`; fails at once when it has ended otherwise. */
export function runIn(stage: Stage, provisioningRunId: string, state: RunState): Promise<ProvisioningRun> {
  return eventually(`run ${RunState[state]}`, async () => {
    const { run } = await stage.provisioning.getProvisioningRun({ provisioningRunId });
    if (run?.state === state) return run;
    const seen = `the run is ${RunState[run?.state ?? 0]}${run?.reason ? ` (${run.reason})` : ""}`;
    if (run && NEVER_LEFT.includes(run.state)) throw new StoryFailed(seen);
    throw new Error(seen);
  });
}
