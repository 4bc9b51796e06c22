import { canonicalJson, sha256 } from "../../json/canonical-json.ts";
import type { ChangeAction, EngineEvent } from "../engine-event.ts";
import { changesSomething, isDestructive, summarize } from "../engine-result.ts";
import { stopIfAsked } from "../engine-stopped.ts";
import type { EngineMode, EngineVersion, Planned, PlanJob } from "../engine.ts";
import { packManifests, type ManifestStep } from "./manifests-artifact.ts";
import { manifestChanges, type ManifestWorld } from "./manifests-changes.ts";
import { desiredManifests, NOTHING_DESIRED } from "./manifests-desired.ts";
import { observeDirectory } from "./manifests-directory.ts";
import { splitOutputs } from "./manifests-outputs.ts";
import { parseRecord, sameRecord, type ManifestRecord } from "./manifests-state.ts";
import { planDigest } from "../plan-digest.ts";
import { scrubber } from "../redaction/scrub.ts";
import { bounded } from "../redaction/shown-change.ts";
import { readState } from "../state-client.ts";

/** Compares what the program wants with what the directory really holds. Throws what `failureFor` knows. */
export async function* planManifests(job: PlanJob, engine: EngineVersion): AsyncGenerator<EngineEvent, Planned> {
  stopIfAsked(job.signals);
  const document = await readState(job.state);
  const { identity } = document;
  const recorded = parseRecord(document);
  const rendered = job.mode === "DESTROY" ? NOTHING_DESIRED : await desiredManifests(job);
  const observed = await observeDirectory(job.targetDirectory);
  const world = { desired: rendered.files, observed, recorded: recorded.files };
  const scrub = scrubber([...job.secrets, ...recorded.secrets, job.state.password]);

  const changes = manifestChanges(job.mode, world, scrub).map(bounded);
  for (const change of changes) yield { type: "change-planned", change };
  stopIfAsked(job.signals);

  const steps = changes.flatMap(({ address, actions }) =>
    actions.map((action) => stepOf(job.mode, address, action, world)),
  );
  const outputs = job.mode === "REFRESH_ONLY" ? recorded.outputs : rendered.outputs;
  const secrets = [...(job.mode === "REFRESH_ONLY" ? recorded.secrets : job.secrets)];
  const digest = planDigest(job, engine, identity, changes, sha256(canonicalJson({ steps, outputs })));
  return {
    result: "planned",
    engine,
    changes,
    summary: summarize(changes),
    destructive: isDestructive(changes),
    noChanges: !changes.some(changesSomething) && sameRecord(recorded, recordAfter(recorded, steps, outputs, secrets)),
    planDigest: digest,
    state: identity,
    ...splitOutputs(outputs, scrub),
    artifact: packManifests({
      planDigest: digest,
      engine: { ...engine },
      state: { ...identity },
      steps,
      outputs,
      secrets,
    }),
    sensitiveValues: [...new Set([...job.secrets, ...recorded.secrets])],
  };
}

/** What is recorded once the steps are done. */
export function recordAfter(
  recorded: ManifestRecord,
  done: readonly ManifestStep[],
  outputs: ManifestRecord["outputs"],
  secrets: ManifestRecord["secrets"],
): ManifestRecord {
  const files = new Map(recorded.files);
  for (const { address, text } of done) {
    if (text === null) files.delete(address);
    else files.set(address, text);
  }
  return { files, outputs, secrets };
}

function stepOf(mode: EngineMode, address: string, action: ChangeAction, world: ManifestWorld): ManifestStep {
  const observed = world.observed.get(address) ?? null;
  return {
    address,
    action,
    expected: observed,
    text: mode === "REFRESH_ONLY" ? observed : (world.desired.get(address) ?? null),
    recordOnly: mode === "REFRESH_ONLY" || action === "no-op" || action === "forget",
  };
}
