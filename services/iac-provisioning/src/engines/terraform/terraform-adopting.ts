import { canonicalJson, type JsonObject } from "../../json/canonical-json.ts";
import { programDeclaration } from "../../programs/program-content.ts";
import { readProgramFiles } from "../../programs/program-files.ts";
import type { ProgramDeclaration } from "../../programs/program.ts";
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
import { type Keys, parsePath } from "../redaction/attribute-path.ts";
import type { EngineEvent } from "../engine-event.ts";
import type { Adoption, AdoptionRefusal, ObservedValue } from "../engine-adoption.ts";
import type { DriftJob } from "../engine.ts";
import { parameterPlace } from "../redaction/parameter-places.ts";
import { playOut } from "../sandbox/play-out.ts";
import { readState } from "../state-client.ts";
import { init } from "./terraform-command.ts";
import { terraformDrift } from "./terraform-drift.ts";
import { makePlan } from "./terraform-planning.ts";
import type { TerraformPlan } from "./terraform-plan.ts";
import { referencesOf, showConfiguration } from "./terraform-references.ts";
import { inSession, type TerraformInstallation, type TerraformSession } from "./terraform-session.ts";

/** Finds parameters by what the program refers to and what values there are, and plans with them to see that it holds. */
export async function adoptTerraform(
  installation: TerraformInstallation,
  job: DriftJob,
  values: readonly ObservedValue[],
): Promise<Adoption> {
  const { parameters } = job;
  const state = await readState(job.state);
  const program = programDeclaration(await readProgramFiles(job.program.directory));
  const survey = await playOut(inSession(installation, job, state, undefined, surveyDrift));
  const { asks, refused } = sorted(values.map((value) => askOf({ ...survey, program, parameters }, value)));
  const after = granted(parameters, asks);
  const impossible = [...refused, ...contradictions(asks), ...misfits(program.parameters, after, asks)];
  const changed = changedParameters(parameters, after);
  if (impossible.length > 0) return { result: "adopted", parameters: changed, refusals: impossible };

  const trial = { ...job, parameters: after };
  const plan = await playOut(inSession(installation, trial, state, undefined, planDrift));
  return { result: "adopted", parameters: changed, refusals: unkept(survey.plan, plan, asks) };
}

interface Survey {
  plan: TerraformPlan;
  configuration: JsonObject;
}

async function* surveyDrift(session: TerraformSession): AsyncGenerator<EngineEvent, Survey> {
  const plan = yield* planDrift(session);
  return { plan, configuration: await showConfiguration(session) };
}

async function* planDrift(session: TerraformSession): AsyncGenerator<EngineEvent, TerraformPlan> {
  yield* init(session);
  return yield* makePlan(session, []);
}

type Ground = Survey & { program: ProgramDeclaration; parameters: JsonObject };

function askOf({ plan, configuration, program, parameters }: Ground, value: ObservedValue): Asked {
  const { address, attributePath } = value;
  const never = whyNever(value);
  if (never !== undefined) return refusal(value, never);
  const keys = parsePath(attributePath);
  if (keys === undefined) return refusal(value, `${attributePath} is no path of an attribute`);
  const entry = terraformDrift(plan).find((each) => placeOf(each) === placeOf(value));
  const sides = sidesOf(plan, address);
  if (!entry || !sides) return refusal(value, "it is as it was applied: there is nothing to adopt");
  if (canonicalJson(entry.after) !== canonicalJson(value.observed)) {
    return refusal(value, "another value is there by now: observe the environment again");
  }
  const drifted = { ...sides, keys, instance: instanceOf(address) };
  const sought = parameterPlace(parameters, candidates({ configuration, program }, value, keys), drifted);
  const wayOut = `declare a specification that says it, or name its parameter in program.yaml: adopts: { ${JSON.stringify(`${address}#${attributePath}`)}: … }`;
  return "problem" in sought ? refusal(value, `${sought.problem}: ${wayOut}`) : { value, ...sought };
}

/** What the program names for it, else what it refers to; any parameter where that leads to something else. */
function candidates(
  { configuration, program }: Pick<Ground, "configuration" | "program">,
  { address, attributePath }: ObservedValue,
  keys: Keys,
): string[] {
  const named = program.adopts[`${address}#${attributePath}`];
  if (named !== undefined) return [named];
  const { parameters, isPartial } = referencesOf(configuration, address, keys);
  return isPartial ? Object.keys(program.parameters) : [...parameters];
}

/** A planned change leads from what is observed to what is declared; what only moved outside, the other way round. */
function sidesOf({ changes, drift }: TerraformPlan, address: string) {
  const change = changes.find((each) => each.address === address && !each.actions.includes("no-op"));
  if (change) return change.before && change.after && { declared: change.after, observed: change.before };
  const moved = drift.find((each) => each.address === address);
  return moved?.before && moved.after && { declared: moved.before, observed: moved.after };
}

function unkept(before: TerraformPlan, after: TerraformPlan, asks: readonly AdoptionAsk[]): AdoptionRefusal[] {
  const left = new Set(terraformDrift(after).map(placeOf));
  const still = asks.filter(({ value }) => left.has(placeOf(value)));
  if (still.length > 0)
    return still.map(({ value }) => refusal(value, "a plan with that parameter would still change it"));
  const known = new Set(terraformDrift(before).map(placeOf));
  const spoilt = [...left].find((place) => !known.has(place));
  if (spoilt === undefined) return [];
  return asks.map(({ value, place }) =>
    refusal(
      value,
      `a plan with parameter ${String(place[0])} changed would change ${spoilt}, which is as it was applied`,
    ),
  );
}

function placeOf({ address, attributePath }: Pick<ObservedValue, "address" | "attributePath">): string {
  return `${address} ${attributePath}`.trim();
}

/** `["web", 0]` of `module.shop["web"].vm.a[0]`. */
function instanceOf(address: string): (string | number)[] {
  return [...address.matchAll(/\[(?:"((?:[^"\\]|\\.)*)"|(\d+))\]/g)].map(([, name, index]) => name ?? Number(index));
}
