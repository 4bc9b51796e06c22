import type { EngineEvent, PlannedChange } from "../engine-event.ts";
import { changesState, isDestructive, summarize } from "../engine-result.ts";
import type { EngineMode, Planned, PlanJob } from "../engine.ts";
import { planDigest } from "../plan-digest.ts";
import { artifactDigest, packArtifact } from "./terraform-artifact.ts";
import { init, showPlan, speak, succeed } from "./terraform-command.ts";
import type { TerraformPlan } from "./terraform-plan.ts";
import { projectRefresh } from "./terraform-plan-projection.ts";
import type { TerraformSession } from "./terraform-session.ts";

const MODE_FLAGS: Readonly<Record<EngineMode, readonly string[]>> = {
  APPLY: [],
  DESTROY: ["-destroy"],
  REFRESH_ONLY: ["-refresh-only"],
};

/** Plans a job and seals the result into an artifact. Throws EngineStopped. */
export async function* planTerraform(session: TerraformSession<PlanJob>): AsyncGenerator<EngineEvent, Planned> {
  const { job, state, binary, workspace } = session;
  yield* init(session);
  const plan = yield* makePlan(session, MODE_FLAGS[job.mode]);
  const changes = job.mode === "REFRESH_ONLY" ? projectRefresh(plan.drift) : plan.changes;
  for (const line of plan.failingChecks) yield { type: "log", level: "warn", line };
  for (const change of changes) yield { type: "change-planned", change };

  const planFile = await workspace.readPlan();
  const lockFile = await workspace.readLockFile();
  // OpenTofu is prepared anew every time: whether it applies a plan without that isn't known.
  const needsInit = binary.version.product !== "terraform" || (await workspace.hasInstalled());
  const digest = planDigest(job, binary.version, state.identity, changes, artifactDigest(planFile));
  return {
    result: "planned",
    engine: binary.version,
    changes,
    summary: summarize(changes),
    destructive: isDestructive(changes),
    noChanges: !changes.some(changesState) && !plan.changesOutputs && !plan.invokesActions,
    planDigest: digest,
    state: state.identity,
    outputs: plan.outputs,
    sensitiveOutputs: plan.sensitiveOutputs,
    artifact: packArtifact({
      planDigest: digest,
      engine: binary.version,
      state: state.identity,
      refreshes: job.mode === "REFRESH_ONLY" ? changes.flatMap(refreshOf) : [],
      plan: planFile.toString("base64"),
      needsInit,
      ...(lockFile !== undefined && { lockFile }),
    }),
    sensitiveValues: plan.secrets,
  };
}

/**
 * Makes the plan and reads it back. It writes no state and takes no lock: the state it read is one version of it, and
 * an apply refuses the plan when there is a newer one. Throws EngineStopped.
 */
export async function* makePlan(
  session: TerraformSession,
  flags: readonly string[],
): AsyncGenerator<EngineEvent, TerraformPlan> {
  const args = ["plan", "-input=false", "-json", "-lock=false", `-out=${session.workspace.planFile}`, ...flags];
  const { exit, diagnostics } = yield* speak(session, args);
  succeed(session, exit, diagnostics);
  return showPlan(session);
}

function refreshOf({ address, actions }: PlannedChange): { address: string; action: "update" | "forget" }[] {
  if (actions.includes("no-op")) return [];
  return [{ address, action: actions.includes("forget") ? "forget" : "update" }];
}
