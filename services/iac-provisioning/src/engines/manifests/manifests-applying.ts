import { messageOf } from "../../system-error.ts";
import type { Diagnostic, EngineEvent } from "../engine-event.ts";
import { applyFailed } from "../engine-result.ts";
import { INTERRUPTED, KILLED, stopIfAsked } from "../engine-stopped.ts";
import type { ApplyJob, ApplyOutcome, EngineFailure } from "../engine.ts";
import { stalePlan, type ManifestArtifact, type ManifestStep } from "./manifests-artifact.ts";
import { observeDirectory, removeManifest, writeManifest } from "./manifests-directory.ts";
import { splitOutputs } from "./manifests-outputs.ts";
import { recordAfter } from "./manifests-planning.ts";
import { parseRecord, printRecord, sameRecord, type ManifestRecord } from "./manifests-state.ts";
import { plainLine } from "../redaction/plain-text.ts";
import { scrubber } from "../redaction/scrub.ts";
import { lockState, readState, StateRefused, unlockState, writeState, type StateDocument } from "../state-client.ts";

const OPERATION = "apply";

export interface ManifestsContext {
  /** A new UUID: for lineages, locks and the names of files that are being written. */
  readonly newId: () => string;
  /** Milliseconds of a clock that only goes forward. */
  readonly elapsed: () => number;
}

/** Does the steps of a plan under the state's lock. Throws what `failureFor` knows, as long as nothing was changed. */
export async function* applyManifests(
  context: ManifestsContext,
  job: ApplyJob,
  artifact: ManifestArtifact,
): AsyncGenerator<EngineEvent, ApplyOutcome> {
  stopIfAsked(job.signals);
  const lockId = context.newId();
  await lockState(job.state, lockId, OPERATION);
  try {
    const before = await readState(job.state);
    await refuseStaleManifests(job, artifact, before);

    const { done, failure } = yield* doSteps(context, job, artifact.steps);
    if (failure?.code === KILLED.code) return applyFailed("indeterminate", failure);

    const recorded = parseRecord(before);
    const record = failure
      ? recordAfter(recorded, done, recorded.outputs, [...new Set([...recorded.secrets, ...artifact.secrets])])
      : recordAfter(recorded, done, artifact.outputs, artifact.secrets);
    const unwritten = await tryToRecord(context, job, lockId, before, record);
    if (unwritten) return applyFailed("indeterminate", unwritten);
    if (!failure) {
      return { result: "applied", ...splitOutputs(record.outputs, scrubber([...job.secrets, job.state.password])) };
    }
    return applyFailed(done.some(changedFile) ? "partially-applied" : "failed", failure);
  } finally {
    // A lock that cannot be released is found by the run that comes next.
    await unlockState(job.state, lockId, OPERATION).catch(() => undefined);
  }
}

async function refuseStaleManifests(
  job: ApplyJob,
  artifact: ManifestArtifact,
  { identity }: StateDocument,
): Promise<void> {
  const { lineage, serial } = artifact.state;
  if (identity.lineage !== lineage || identity.serial !== serial) {
    throw stalePlan(`it was made from serial ${serial} of the state, which is now at serial ${identity.serial}`);
  }
  const observed = await observeDirectory(job.targetDirectory);
  const moved = artifact.steps.find(({ address, expected }) => (observed.get(address) ?? null) !== expected);
  if (moved) throw stalePlan(`${moved.address} has changed since the plan was made`);
}

/** In order, up to the first that fails or the first before which the job is told to stop. */
async function* doSteps(context: ManifestsContext, job: ApplyJob, steps: readonly ManifestStep[]) {
  const scrub = scrubber([...job.secrets, job.state.password]);
  const done: ManifestStep[] = [];
  for (const step of steps) {
    const stop = job.signals.kill.aborted ? KILLED : job.signals.interrupt.aborted ? INTERRUPTED : undefined;
    if (stop) return { done, failure: stop };

    const { address, action } = step;
    if (action === "no-op") {
      done.push(step);
      continue;
    }
    yield { type: "resource-started", address, action } satisfies EngineEvent;
    const startedAt = context.elapsed();
    try {
      await doStep(context, job, step);
    } catch (error) {
      const summary = scrub.text(plainLine(messageOf(error)));
      const diagnostic: Diagnostic = { severity: "error", summary, detail: "", address };
      yield { type: "resource-failed", address, action, durationMs: since(context, startedAt) } satisfies EngineEvent;
      yield { type: "diagnostic", diagnostic } satisfies EngineEvent;
      const failure: EngineFailure = { code: "ENGINE_ERROR", message: summary, address };
      return { done, failure };
    }
    done.push(step);
    yield {
      type: "resource-applied",
      address,
      action,
      id: address,
      durationMs: since(context, startedAt),
    } satisfies EngineEvent;
  }
  return { done, failure: undefined };
}

async function doStep(
  { newId }: ManifestsContext,
  job: ApplyJob,
  { address, text, recordOnly }: ManifestStep,
): Promise<void> {
  if (recordOnly) return;
  if (text === null) await removeManifest(job.targetDirectory, address);
  else await writeManifest(job.targetDirectory, address, text, newId());
}

/** Records what was done; the reason when it could not be. */
async function tryToRecord(
  { newId }: ManifestsContext,
  job: ApplyJob,
  lockId: string,
  before: StateDocument,
  record: ManifestRecord,
): Promise<EngineFailure | undefined> {
  const { lineage, serial } = before.identity;
  if (lineage !== "" && sameRecord(parseRecord(before), record)) return undefined;
  const state = printRecord(lineage === "" ? newId() : lineage, serial + 1, record);
  try {
    await writeState(job.state, lockId, state);
    return undefined;
  } catch (error) {
    if (!(error instanceof StateRefused)) throw error;
    const rescue = await job.rescueState(state);
    if (rescue.result === "recorded") return undefined;
    const message = `the files are written, but not recorded (${error.message}); the record is salvaged: ${rescue.reason}`;
    return { code: "STATE_PERSIST_FAILED", message };
  }
}

function changedFile({ recordOnly }: ManifestStep): boolean {
  return !recordOnly;
}

function since({ elapsed }: ManifestsContext, startedAt: number): number {
  return Math.round(elapsed() - startedAt);
}
