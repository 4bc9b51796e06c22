import { scalarTexts, type JsonValue } from "../../json/canonical-json.ts";
import type { PlannedChange } from "../engine-event.ts";
import type { ObservedResource } from "../engine.ts";
import type { JsonPlaces } from "../json-stream.ts";
import { sensitiveTexts, unionMask } from "../redaction/mask.ts";
import { observedResource } from "./terraform-observed.ts";
import * as format from "./terraform-plan-json.ts";
import { projectChange } from "./terraform-plan-projection.ts";

/** What has been read of a plan so far: masked, but not scrubbed, for not every secret is known yet. */
export interface PlanContents {
  readonly changes: PlannedChange[];
  readonly drift: PlannedChange[];
  readonly resources: ObservedResource[];
  readonly relevant: Set<string>;
  readonly outputs: Map<string, JsonValue>;
  readonly sensitiveOutputs: Map<string, JsonValue>;
  readonly failingChecks: string[];
  readonly deferred: string[];
  readonly secrets: Set<string>;
  /** Values come early in the document, and late which of them are sensitive. */
  readonly variables: Map<string, JsonValue | undefined>;
  readonly sensitiveVariables: Set<string>;
  hasFormat: boolean;
  isErrored: boolean;
  isComplete: boolean;
  changesOutputs: boolean;
  invokesActions: boolean;
}

export function nothingRead(): PlanContents {
  return {
    changes: [],
    drift: [],
    resources: [],
    relevant: new Set(),
    outputs: new Map(),
    sensitiveOutputs: new Map(),
    failingChecks: [],
    deferred: [],
    secrets: new Set(),
    variables: new Map(),
    sensitiveVariables: new Set(),
    hasFormat: false,
    isErrored: false,
    isComplete: true,
    changesOutputs: false,
    invokesActions: false,
  };
}

/** Where in the document there is something to read. What is taken throws EngineStopped when it has another form. */
export function planPlaces(plan: PlanContents): JsonPlaces {
  const module: JsonPlaces = {
    resources: { "*": (value, index) => takeStateResource(plan, value, index) },
    get child_modules() {
      return { "*": module };
    },
  };
  return {
    format_version: (value) => {
      format.refuseUnknownFormat(value);
      plan.hasFormat = true;
    },
    errored: (value) => (plan.isErrored = value === true),
    complete: (value) => (plan.isComplete = value !== false),
    variables: {
      "*": (value, name) => plan.variables.set(name, format.read(format.variable, value, `variables.${name}`).value),
    },
    resource_changes: {
      "*": (value, index) => takeChange(plan, plan.changes, value, `resource_changes.${index}`),
    },
    resource_drift: {
      "*": (value, index) => takeChange(plan, plan.drift, value, `resource_drift.${index}`),
    },
    deferred_changes: { "*": (value, index) => takeDeferred(plan, value, index) },
    deferred_action_invocations: { "*": () => (plan.isComplete = false) },
    action_invocations: { "*": () => (plan.invokesActions = true) },
    output_changes: { "*": (value, name) => takeOutputChange(plan, value, name) },
    planned_values: { outputs: { "*": (value, name) => takeOutput(plan, value, name) } },
    prior_state: { values: { root_module: module } },
    configuration: { root_module: { variables: { "*": (value, name) => takeDeclaration(plan, value, name) } } },
    relevant_attributes: { "*": (value, index) => takeRelevant(plan, value, index) },
    checks: { "*": (value, index) => takeCheck(plan, value, index) },
  };
}

function takeChange(plan: PlanContents, kept: PlannedChange[], value: JsonValue, place: string): void {
  const planned = format.read(format.resourceChange, value, place);
  takeSecrets(plan, planned.change);
  const change = projectChange(planned);
  if (change) kept.push(change);
}

function takeOutputChange(plan: PlanContents, value: JsonValue, name: string): void {
  const change = format.read(format.outputChange, value, `output_changes.${name}`);
  takeSecrets(plan, change);
  if (change.actions.some((action) => action !== "no-op")) plan.changesOutputs = true;
}

function takeSecrets(plan: PlanContents, change: format.TerraformChange): void {
  const sensitive = unionMask(change.before_sensitive, change.after_sensitive);
  for (const text of sensitiveTexts(change.before, sensitive)) plan.secrets.add(text);
  for (const text of sensitiveTexts(change.after, sensitive)) plan.secrets.add(text);
}

function takeStateResource(plan: PlanContents, value: JsonValue, index: string): void {
  const resource = format.read(format.stateResource, value, `prior_state resources.${index}`);
  for (const text of sensitiveTexts(resource.values, resource.sensitive_values)) plan.secrets.add(text);
  if (resource.mode === "managed") plan.resources.push(observedResource(resource));
}

function takeOutput(plan: PlanContents, value: JsonValue, name: string): void {
  const output = format.read(format.plannedOutput, value, `planned_values.outputs.${name}`);
  const outputs = output.sensitive ? plan.sensitiveOutputs : plan.outputs;
  if (output.value !== undefined) outputs.set(name, output.value);
  if (output.sensitive) for (const text of scalarTexts(output.value)) plan.secrets.add(text);
}

function takeDeclaration(plan: PlanContents, value: JsonValue, name: string): void {
  const { sensitive } = format.read(format.variableDeclaration, value, `configuration.root_module.variables.${name}`);
  if (sensitive) plan.sensitiveVariables.add(name);
}

function takeRelevant(plan: PlanContents, value: JsonValue, index: string): void {
  plan.relevant.add(format.read(format.relevantAttribute, value, `relevant_attributes.${index}`).resource);
}

function takeDeferred(plan: PlanContents, value: JsonValue, index: string): void {
  const { reason, resource_change } = format.read(format.deferredChange, value, `deferred_changes.${index}`);
  plan.deferred.push(`${resource_change.address} (${reason})`);
}

function takeCheck(plan: PlanContents, value: JsonValue, index: string): void {
  const { address, status, instances } = format.read(format.check, value, `checks.${index}`);
  if (status !== "fail" && status !== "error") return;
  const problems = instances.flatMap((instance) => instance.problems.map(({ message }) => message));
  plan.failingChecks.push(`${address.to_display} does not hold: ${problems.join("; ") || "it tells no reason"}`);
}
