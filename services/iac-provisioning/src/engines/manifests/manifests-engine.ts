import type { EngineEvent } from "../engine-event.ts";
import type { DriftJob, Engine, EngineVersion, Observed } from "../engine.ts";
import { applyFailed, refuse } from "../engine-result.ts";
import { failureFor, stopIfAsked } from "../engine-stopped.ts";
import { adoptManifests } from "./manifests-adopting.ts";
import { applyManifests, type ManifestsContext } from "./manifests-applying.ts";
import { unpackManifests } from "./manifests-artifact.ts";
import { manifestDrift, manifestResources } from "./manifests-changes.ts";
import { desiredManifests } from "./manifests-desired.ts";
import { observeDirectory } from "./manifests-directory.ts";
import { planManifests } from "./manifests-planning.ts";
import { parseRecord } from "./manifests-state.ts";
import { scrubber } from "../redaction/scrub.ts";
import { readState } from "../state-client.ts";

/** Goes up when the same program and parameters would render to other files. */
const VERSION: EngineVersion = { product: "manifests", version: "1.0.0" };

/**
 * The Engine that needs no binary: it renders a program's templates into the environment's directory, from where a
 * GitOps agent or a person takes them. What it applied is recorded at the state backend.
 */
export function manifestsEngine(context: ManifestsContext): Engine {
  return {
    name: "manifests",
    version: () => Promise.resolve(VERSION),

    async *plan(job) {
      try {
        return yield* planManifests(job, VERSION);
      } catch (error) {
        return refuse(failureFor(error));
      }
    },

    async *apply(job) {
      try {
        return yield* applyManifests(context, job, unpackManifests(job, VERSION));
      } catch (error) {
        return applyFailed("failed", failureFor(error));
      }
    },

    async *drift(job) {
      try {
        return yield* observeManifests(job);
      } catch (error) {
        return refuse(failureFor(error));
      }
    },

    async adopt(job, values) {
      try {
        stopIfAsked(job.signals);
        return await adoptManifests(job, values);
      } catch (error) {
        return refuse(failureFor(error));
      }
    },
  };
}

async function* observeManifests(job: DriftJob): AsyncGenerator<EngineEvent, Observed> {
  stopIfAsked(job.signals);
  const state = await readState(job.state);
  const { files: desired } = await desiredManifests(job);
  const observed = await observeDirectory(job.targetDirectory);
  const recorded = parseRecord(state);
  const scrub = scrubber([...job.secrets, ...recorded.secrets, job.state.password]);
  yield { type: "log", level: "info", line: `observed ${observed.size} files, ${desired.size} are declared` };
  return {
    result: "observed",
    engine: VERSION,
    state: state.identity,
    drift: manifestDrift(desired, observed, scrub),
    resources: manifestResources(observed, scrub),
    outputs: scrub.object(recorded.outputs),
  };
}
