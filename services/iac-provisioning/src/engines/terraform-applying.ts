import { access, writeFile } from "node:fs/promises";
import path from "node:path";
import type { EngineEvent } from "./engine-event.ts";
import { applyFailed } from "./engine-result.ts";
import { EngineStopped, KILLED } from "./engine-stopped.ts";
import type { ApplyJob, ApplyOutcome, EngineFailure } from "./engine.ts";
import { readState, StateRefused, type StateDocument } from "./state-client.ts";
import type { TerraformArtifact } from "./terraform-artifact.ts";
import { init, speak, type CommandEnd } from "./terraform-command.ts";
import { terraformFailure } from "./terraform-failure.ts";
import type { TerraformSession } from "./terraform-session.ts";
import { resourcesDigest, stateOutputs } from "./terraform-state.ts";

/** The environment's queue lets one run in at a time, so a lock that is held is soon free, or orphaned. */
const LOCK_TIMEOUT = "-lock-timeout=30s";
/** Where the CLI leaves the state that it could not write to the backend. */
const UNWRITTEN_STATE_FILE = "errored.tfstate";

/** Throws EngineStopped when somebody wrote the state since the plan was made. */
export function refuseStale(artifact: TerraformArtifact, { identity }: StateDocument): void {
  const { lineage, serial } = artifact.state;
  if (identity.lineage === lineage && identity.serial === serial) return;
  const message = `stale plan: it was made from serial ${serial} of the state, which is now at serial ${identity.serial}`;
  throw new EngineStopped({ code: "STALE_PLAN", message });
}

/** Applies the plan of an artifact. Throws EngineStopped only as long as nothing can have been changed. */
export async function* applyTerraform(
  session: TerraformSession<ApplyJob>,
  artifact: TerraformArtifact,
): AsyncGenerator<EngineEvent, ApplyOutcome> {
  await writeFile(session.workspace.planFile, Buffer.from(artifact.plan, "base64"), { mode: 0o600 });
  yield* init(session);
  const end = yield* speak(session, ["apply", "-input=false", "-json", LOCK_TIMEOUT, session.workspace.planFile]);
  if (end.exit.code !== 0) return whatWasDone(session, end);

  for (const refresh of artifact.refreshes) {
    yield { type: "resource-started", ...refresh };
    yield { type: "resource-applied", ...refresh, durationMs: 0 };
  }
  return readOutputs(session);
}

async function readOutputs({ job, scrub }: TerraformSession<ApplyJob>): Promise<ApplyOutcome> {
  try {
    const { outputs, sensitiveOutputs } = stateOutputs(await readState(job.state));
    return { result: "applied", outputs: scrub.object(outputs), sensitiveOutputs };
  } catch (error) {
    if (!(error instanceof StateRefused)) throw error;
    return applyFailed("indeterminate", { code: error.code, message: `all is applied, but ${error.message}` });
  }
}

/** The exit code of a failed apply tells nothing about its effects; its steps and the state do. */
async function whatWasDone(session: TerraformSession<ApplyJob>, end: CommandEnd): Promise<ApplyOutcome> {
  const failure = terraformFailure(end.exit, end.diagnostics, session.job.signals);
  if (failure.code === KILLED.code) return applyFailed("indeterminate", failure);
  if (await isStateUnwritten(session)) return applyFailed("indeterminate", unwritten(failure));
  try {
    const after = await readState(session.job.state);
    const changed = end.stepsDone > 0 || resourcesDigest(after) !== resourcesDigest(session.state);
    return applyFailed(changed ? "partially-applied" : "failed", failure);
  } catch (error) {
    if (!(error instanceof StateRefused)) throw error;
    return applyFailed("indeterminate", { ...failure, message: `${failure.message}; then ${error.message}` });
  }
}

function isStateUnwritten({ workspace }: TerraformSession): Promise<boolean> {
  return access(path.join(workspace.directory, UNWRITTEN_STATE_FILE)).then(
    () => true,
    () => false,
  );
}

function unwritten(failure: EngineFailure): EngineFailure {
  return { ...failure, message: `the state could not be written, so it lacks what was changed: ${failure.message}` };
}
