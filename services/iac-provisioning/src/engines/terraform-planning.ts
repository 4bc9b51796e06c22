import { readFile } from "node:fs/promises";
import path from "node:path";
import type { EngineEvent, PlannedChange } from "./engine-event.ts";
import { changesSomething, isDestructive, summarize } from "./engine-result.ts";
import { EngineStopped } from "./engine-stopped.ts";
import type { EngineMode, Planned, PlanJob } from "./engine.ts";
import { planDigest } from "./plan-digest.ts";
import { artifactDigest, packArtifact } from "./terraform-artifact.ts";
import { init, showPlan, speak, succeed } from "./terraform-command.ts";
import type { TerraformPlan } from "./terraform-plan-json.ts";
import {
  changesOutputs,
  plannedOutputs,
  planSecrets,
  projectChanges,
  projectRefresh,
} from "./terraform-plan-projection.ts";
import { sessionScrubber, type TerraformSession } from "./terraform-session.ts";
import { LOCK_FILE } from "./terraform-workspace.ts";

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
  const secrets = planSecrets(plan);
  const changes = shownChanges(session, plan, secrets);
  for (const change of changes) yield { type: "change-planned", change };

  const planFile = await readFile(workspace.planFile);
  const digest = planDigest(job, binary.version, state.identity, changes, artifactDigest(planFile));
  return {
    result: "planned",
    engine: binary.version,
    changes,
    summary: summarize(changes),
    destructive: isDestructive(changes),
    noChanges: !changes.some(changesSomething) && !changes.some(isMove) && !changesOutputs(plan),
    planDigest: digest,
    state: state.identity,
    outputs: sessionScrubber(job, state, secrets).object(plannedOutputs(plan)),
    artifact: packArtifact({
      planDigest: digest,
      engine: binary.version,
      state: state.identity,
      refreshes: job.mode === "REFRESH_ONLY" ? changes.flatMap(refreshOf) : [],
      plan: planFile.toString("base64"),
      ...(await lockFileOf(workspace.directory)),
    }),
    sensitiveValues: secrets,
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
  const plan = await showPlan(session);
  if (plan.errored)
    throw new EngineStopped({ code: "ENGINE_ERROR", message: "the engine's plan is incomplete by an error" });
  return plan;
}

function shownChanges({ job, state }: TerraformSession<PlanJob>, plan: TerraformPlan, secrets: readonly string[]) {
  const scrub = sessionScrubber(job, state, secrets);
  const changes = job.mode === "REFRESH_ONLY" ? projectRefresh(plan) : projectChanges(plan);
  return changes.map((change): PlannedChange => ({
    ...change,
    before: change.before && scrub.object(change.before),
    after: change.after && scrub.object(change.after),
  }));
}

function refreshOf({ address, actions }: PlannedChange): { address: string; action: "update" | "forget" }[] {
  return [{ address, action: actions.includes("forget") ? "forget" : "update" }];
}

function isMove({ previousAddress }: PlannedChange): boolean {
  return previousAddress !== undefined;
}

async function lockFileOf(directory: string): Promise<{ lockFile?: string }> {
  try {
    return { lockFile: await readFile(path.join(directory, LOCK_FILE), "utf8") };
  } catch {
    return {};
  }
}
