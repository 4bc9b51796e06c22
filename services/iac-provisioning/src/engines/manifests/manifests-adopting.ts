import {
  canonicalJson,
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from "../../json/canonical-json.ts";
import { InvalidProgram, PROGRAM_FILE } from "../../programs/program.ts";
import { programDeclaration } from "../../programs/program-content.ts";
import type { ProgramFile } from "../../programs/program-files.ts";
import {
  type AdoptionAsk,
  type Asked,
  changedParameters,
  contradictions,
  granted,
  misfits,
  refusal,
  sorted,
  whyNever,
} from "../adoption-asks.ts";
import { type Keys, memberAt, parsePath } from "../redaction/attribute-path.ts";
import type { Adoption, AdoptionRefusal, ObservedValue } from "../engine-adoption.ts";
import type { DriftJob } from "../engine.ts";
import { manifestAttributes } from "./manifest-document.ts";
import { type Files, manifestDrift } from "./manifests-changes.ts";
import { type ManifestTemplate, manifestTemplates, programFiles, renderManifests } from "./manifests-desired.ts";
import { observeDirectory } from "./manifests-directory.ts";
import { invert } from "./manifests-inversion.ts";
import { scrubber } from "../redaction/scrub.ts";

/** A component of the `components` output, as drift that other observers see names it. */
const COMPONENT = "component/";

/** Turns the program's templates around, and holds the result against what the directory really holds. */
export async function adoptManifests(job: DriftJob, values: readonly ObservedValue[]): Promise<Adoption> {
  const { parameters } = job;
  const files = await programFiles(job);
  const observed = await observeDirectory(job.targetDirectory);
  const ground = { files, parameters, observed, templates: manifestTemplates(files, parameters) };
  const drifted = driftedPlaces(ground, parameters);
  const { asks, refused } = sorted(values.map((value) => askOf(ground, drifted, value)));
  const after = granted(parameters, asks);
  const impossible = [
    ...refused,
    ...contradictions(asks),
    ...misfits(programDeclaration(files).parameters, after, asks),
  ];
  const refusals = impossible.length > 0 ? impossible : unkept(ground, drifted, asks);
  return { result: "adopted", parameters: changedParameters(parameters, after), refusals };
}

interface Ground {
  files: readonly ProgramFile[];
  parameters: JsonObject;
  templates: readonly ManifestTemplate[];
  observed: Files;
}

function askOf(ground: Ground, drifted: ReadonlySet<string>, value: ObservedValue): Asked {
  const { address, attributePath } = value;
  const never = whyNever(value);
  if (never !== undefined) return refusal(value, never);
  const keys = parsePath(attributePath);
  if (keys === undefined) return refusal(value, `${attributePath} is no path of an attribute`);
  if (address.startsWith(COMPONENT)) return askOfComponent(ground, value, keys);

  if (!drifted.has(placeOf(value))) return refusal(value, "it is as it was applied: there is nothing to adopt");
  const found = ground.templates.find((template) => template.address === address);
  if (!found) return refusal(value, `the program has no file that becomes ${address}`);
  const seen = memberAt(manifestAttributes(address, ground.observed.get(address) ?? ""), keys);
  if (canonicalJson(seen ?? null) !== canonicalJson(value.observed)) {
    return refusal(value, "another value is there by now: observe the environment again");
  }
  const inverted = invert({
    template: attributesOf(found.template),
    keys,
    observed: seen,
    parameters: ground.parameters,
    file: found.path,
  });
  return "problem" in inverted ? refusal(value, inverted.problem) : { value, ...inverted };
}

/** What an observer saw of a component; the program says what it should be in its outputs. */
function askOfComponent({ files, parameters }: Ground, value: ObservedValue, [attribute, ...keys]: Keys): Asked {
  const component = value.address.slice(COMPONENT.length);
  const index = componentsOf(files, parameters).findIndex(({ name }) => name === component);
  const template = programDeclaration(files).outputs["components"];
  if (index < 0 || template === undefined || attribute === undefined) {
    return refusal(value, `the program's components output has no ${component}`);
  }
  const file = `${PROGRAM_FILE}: outputs.components`;
  const inverted = invert({ template, keys: [index, attribute, ...keys], observed: value.observed, parameters, file });
  return "problem" in inverted ? refusal(value, inverted.problem) : { value, ...inverted };
}

/** What the asked parameters don't do, or do beside what was asked. */
function unkept(ground: Ground, drifted: ReadonlySet<string>, asks: readonly AdoptionAsk[]): AdoptionRefusal[] {
  try {
    const after = granted(ground.parameters, asks);
    const left = driftedPlaces(ground, after);
    const still = asks.filter(({ value }) => stillDiffers(ground, left, after, value));
    if (still.length > 0) return still.map(({ value }) => refusal(value, "it would still differ with that parameter"));
    return sideEffects(ground, drifted, asks);
  } catch (error) {
    if (!(error instanceof InvalidProgram)) throw error;
    return asks.map(({ value }) => refusal(value, `the program makes no sense with it: ${error.message}`));
  }
}

function stillDiffers(
  ground: Ground,
  left: ReadonlySet<string>,
  parameters: JsonObject,
  value: ObservedValue,
): boolean {
  if (!value.address.startsWith(COMPONENT)) return left.has(placeOf(value));
  const name = value.address.slice(COMPONENT.length);
  const component = componentsOf(ground.files, parameters).find((each) => each.name === name);
  const said = memberAt(component, parsePath(value.attributePath) ?? []);
  return canonicalJson(said ?? null) !== canonicalJson(value.observed);
}

/** A parameter that other places hold as well would change them. What a component asks for is yet to be written. */
function sideEffects(ground: Ground, drifted: ReadonlySet<string>, asks: readonly AdoptionAsk[]): AdoptionRefusal[] {
  const ofComponents = new Set(
    asks.filter(({ value }) => value.address.startsWith(COMPONENT)).map(({ place }) => place[0]),
  );
  const names = new Set(asks.map(({ place }) => place[0]).filter((name) => !ofComponents.has(name)));
  return [...names].flatMap((name) => {
    const its = asks.filter(({ place }) => place[0] === name);
    const after = driftedPlaces(ground, granted(ground.parameters, its));
    const spoilt = [...after].find((place) => !drifted.has(place));
    if (spoilt === undefined) return [];
    const reason = `parameter ${String(name)} is also at ${spoilt}, which is as it was applied and would change`;
    return its.map(({ value }) => refusal(value, reason));
  });
}

/** `address attribute` of all that isn't as these parameters say. */
function driftedPlaces({ files, observed }: Ground, parameters: JsonObject): ReadonlySet<string> {
  const { files: desired } = renderManifests(files, parameters);
  return new Set(manifestDrift(desired, observed, scrubber([])).map(placeOf));
}

function placeOf({ address, attributePath }: Pick<ObservedValue, "address" | "attributePath">): string {
  return `${address} ${attributePath}`.trim();
}

/** As `manifestAttributes` has the document that it becomes. */
function attributesOf(template: JsonValue): JsonValue {
  if (isJsonObject(template)) return template;
  return isJsonArray(template) ? { documents: template } : { content: template };
}

function componentsOf(files: readonly ProgramFile[], parameters: JsonObject): JsonObject[] {
  const { components } = renderManifests(files, parameters).outputs;
  return isJsonArray(components) ? components.filter(isJsonObject) : [];
}
