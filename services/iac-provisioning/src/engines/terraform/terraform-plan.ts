import { scalarTexts, type JsonObject } from "../../json/canonical-json.ts";
import type { PlannedChange } from "../engine-event.ts";
import type { ObservedResource } from "../engine.ts";
import { jsonStream, NotJson } from "../json-stream.ts";
import { safeLine } from "../redaction/plain-text.ts";
import type { Scrubber } from "../redaction/scrub.ts";
import { shownChange } from "../redaction/shown-change.ts";
import { nothingRead, planPlaces, type PlanContents } from "./terraform-plan-contents.ts";
import { invalidPlan } from "./terraform-plan-json.ts";

/** What is kept of a plan. It may be stored in clear, but for `sensitiveOutputs` and `secrets`. */
export interface TerraformPlan {
  readonly changes: readonly PlannedChange[];
  /** What moved outside since the state was recorded: `update`, `delete`, or `no-op` where only its address did. */
  readonly drift: readonly PlannedChange[];
  /** The resources of the refreshed state. */
  readonly resources: readonly ObservedResource[];
  /** Addresses, without the keys of their instances, on which planned changes depend. */
  readonly relevant: ReadonlySet<string>;
  /** Outputs that are known already and not sensitive. */
  readonly outputs: JsonObject;
  /** Those that are known already and sensitive. */
  readonly sensitiveOutputs: JsonObject;
  readonly changesOutputs: boolean;
  /** Whether the apply runs actions of providers beside its changes. */
  readonly invokesActions: boolean;
  /** Checks of the program that do not hold, a line each. */
  readonly failingChecks: readonly string[];
  /** Every value that the program or its providers mark as sensitive. */
  readonly secrets: readonly string[];
}

/**
 * Reads `show -json <plan>` while it is printed. Each resource is read, masked and dropped at once, so that memory
 * holds neither the document nor its tree. Scrubbing waits for the end: all over the document it is said which values
 * are secret.
 */
export interface TerraformPlanReader {
  /** Throws EngineStopped when it is no plan that this version understands whole. */
  write(bytes: Uint8Array): void;
  /** Throws EngineStopped. `scrubberFor` is given the plan's secrets. */
  end(scrubberFor: (secrets: readonly string[]) => Scrubber): TerraformPlan;
}

/** 15,000 small resources are 11 MB. */
const MAX_PLAN_BYTES = 256 * 1024 * 1024;
const MAX_NAMED = 5;

export function terraformPlanReader(): TerraformPlanReader {
  const contents = nothingRead();
  const stream = jsonStream(planPlaces(contents));
  let size = 0;
  return {
    write(bytes) {
      size += bytes.length;
      if (size > MAX_PLAN_BYTES)
        throw invalidPlan(`the plan has over ${MAX_PLAN_BYTES} bytes as JSON: split the program`);
      orInvalid(() => stream.write(bytes));
    },
    end(scrubberFor) {
      orInvalid(() => stream.end());
      refuseIncomplete(contents);
      for (const name of contents.sensitiveVariables) {
        for (const text of scalarTexts(contents.variables.get(name))) contents.secrets.add(text);
      }
      return shown(contents, scrubberFor([...contents.secrets]));
    },
  };
}

/** Puts each change in the place of what it was read as, so that no two copies of them all are held. */
function shown(contents: PlanContents, scrub: Scrubber): TerraformPlan {
  const { changes, drift, resources, outputs, sensitiveOutputs, failingChecks, secrets } = contents;
  replaceEach(changes, (change) => shownChange(change, scrub));
  replaceEach(drift, (change) => shownChange(change, scrub));
  replaceEach(resources, (resource) => ({
    ...resource,
    id: scrub.text(resource.id),
    attributes: scrub.object(resource.attributes),
  }));
  return {
    changes,
    drift,
    resources,
    relevant: contents.relevant,
    outputs: scrub.object(Object.fromEntries(outputs)),
    sensitiveOutputs: Object.fromEntries(sensitiveOutputs),
    changesOutputs: contents.changesOutputs,
    invokesActions: contents.invokesActions,
    failingChecks: failingChecks.map((line) => safeLine(line, scrub)),
    secrets: [...secrets],
  };
}

function refuseIncomplete({ hasFormat, isErrored, isComplete, deferred }: PlanContents): void {
  if (!hasFormat) throw invalidPlan('what "show -json" prints has not the form of a plan: it tells no format_version');
  if (isErrored) throw invalidPlan("the engine's plan is incomplete by an error");
  if (isComplete && deferred.length === 0) return;
  const named = deferred.slice(0, MAX_NAMED).join(", ") + (deferred.length > MAX_NAMED ? ", …" : "");
  throw invalidPlan(
    `the plan is incomplete: the engine puts off ${named || "some changes"}, so applying it would not reach the ` +
      "specification: have the program not depend on what is known only after another apply",
  );
}

/** The document itself is cut short or no JSON: the engine died, or is none. */
function orInvalid(read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    throw invalidPlan(`what "show -json" prints has not the form of a plan: ${error.message}`);
  }
}

function replaceEach<T>(items: T[], change: (item: T) => T): void {
  for (const [index, item] of items.entries()) items[index] = change(item);
}
