import type { Diagnostic, EngineEvent } from "../engine-event.ts";
import { applyFailed } from "../engine-result.ts";
import { EngineStopped, KILLED } from "../engine-stopped.ts";
import type { ApplyJob, ApplyOutcome } from "../engine.ts";
import { endedByItself } from "../sandbox/sandbox-failure.ts";
import { readState, StateRefused, type StateDocument } from "../state-client.ts";
import type { TerraformArtifact } from "./terraform-artifact.ts";
import { init, speak, type CommandEnd } from "./terraform-command.ts";
import { terraformFailure } from "./terraform-failure.ts";
import type { TerraformSession } from "./terraform-session.ts";
import { resourcesDigest, stateOutputs } from "./terraform-state.ts";
import {
  type DumpListener,
  isBookkeeping,
  listenForDump,
  readUnwritten,
  removeUnwritten,
  saysUnwritten,
} from "./terraform-unwritten.ts";

/** The environment's queue lets one run in at a time, so a lock that is held is soon free, or orphaned. */
const LOCK_TIMEOUT = "-lock-timeout=30s";

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
  const { workspace } = session;
  await workspace.writePlan(Buffer.from(artifact.plan, "base64"));
  if (artifact.needsInit) yield* init(session);
  const dump = listenForDump();
  const args = ["apply", "-input=false", "-json", LOCK_TIMEOUT, workspace.planFile];
  let end: CommandEnd | undefined;
  try {
    end = yield* speak(session, args, { hear: dump.hear, outlivesService: true });
  } finally {
    if (!end) await rescueUnwritten(session, dump);
  }
  if (end.exit.code !== 0) {
    const rescue = await rescueUnwritten(session, dump);
    if (rescue?.result === "kept") return unrecorded(session, end, `it is salvaged and not recorded: ${rescue.reason}`);
    if (!rescue && end.diagnostics.some(saysUnwritten)) return unrecorded(session, end, "it is lost");
    if (!isAllDone(session, end)) return whatWasDone(session, end);
  }

  for (const refresh of artifact.refreshes) {
    yield { type: "resource-started", ...refresh };
    yield { type: "resource-applied", ...refresh, durationMs: 0 };
  }
  return readOutputs(session);
}

async function rescueUnwritten({ job, workspace }: TerraformSession<ApplyJob>, dump: DumpListener) {
  const state = dump.state() ?? (await readUnwritten(workspace.directory));
  if (state === undefined) return undefined;
  const rescue = await job.rescueState(state);
  await removeUnwritten(workspace.directory);
  return rescue;
}

/** The state is rescued, or was written, and that is all that the CLI complained of. */
function isAllDone({ job }: TerraformSession<ApplyJob>, { exit, diagnostics }: CommandEnd): boolean {
  if (job.signals.kill.aborted || exit.signal !== null) return false;
  const errors = diagnostics.filter(isError);
  return errors.length > 0 && errors.every(isBookkeeping);
}

function unrecorded(
  { job }: TerraformSession<ApplyJob>,
  { exit, diagnostics }: CommandEnd,
  fate: string,
): ApplyOutcome {
  const { message } = terraformFailure(exit, diagnostics, job.signals);
  return applyFailed("indeterminate", {
    code: "STATE_PERSIST_FAILED",
    message: `the engine could not write its state (${message}): ${fate}`,
  });
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
  const causes = end.diagnostics.filter((diagnostic) => !isBookkeeping(diagnostic));
  const failure = terraformFailure(end.exit, causes.some(isError) ? causes : end.diagnostics, session.job.signals);
  if (failure.code === KILLED.code || !endedByItself(end.exit)) return applyFailed("indeterminate", failure);
  try {
    const after = await readState(session.job.state);
    const changed = end.stepsDone > 0 || resourcesDigest(after) !== resourcesDigest(session.state);
    return applyFailed(changed ? "partially-applied" : "failed", failure);
  } catch (error) {
    if (!(error instanceof StateRefused)) throw error;
    return applyFailed("indeterminate", { ...failure, message: `${failure.message}; then ${error.message}` });
  }
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}
