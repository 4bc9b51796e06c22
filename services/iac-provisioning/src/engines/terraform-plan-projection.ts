import { isJsonObject, scalarTexts, type JsonObject, type JsonValue } from "../programs/canonical-json.ts";
import type { ChangeAction, PlannedChange } from "./engine-event.ts";
import { mask, sensitiveTexts } from "./mask.ts";
import { changeAction } from "./terraform-messages.ts";
import type { TerraformPlan, TerraformResourceChange, TerraformStateModule } from "./terraform-plan-json.ts";

/** The plan's changes as they may be shown: an allow-list of fields, with sensitive and unknown values masked. */
export function projectChanges(plan: TerraformPlan): PlannedChange[] {
  return plan.resource_changes.map((change) => projectChange(change, change.change.actions.map(changeAction)));
}

/** What a refresh-only plan will record: nothing is deleted by it, a resource that is gone is only forgotten. */
export function projectRefresh(plan: TerraformPlan): PlannedChange[] {
  return plan.resource_drift.map((change) =>
    projectChange(change, change.change.actions.includes("delete") ? ["forget"] : ["update"]),
  );
}

export function projectChange(
  { address, type, previous_address, action_reason, change }: TerraformResourceChange,
  actions: readonly ChangeAction[],
): PlannedChange {
  return {
    address,
    resourceType: type,
    actions,
    before: objectOrNull(mask(change.before, change.before_sensitive, undefined)),
    after: objectOrNull(mask(change.after, change.after_sensitive, change.after_unknown)),
    ...(action_reason === undefined ? {} : { actionReason: action_reason }),
    ...(previous_address === undefined ? {} : { previousAddress: previous_address }),
  };
}

export function changesOutputs(plan: TerraformPlan): boolean {
  return Object.values(plan.output_changes).some(({ actions }) => actions.some((action) => action !== "no-op"));
}

/** Outputs that are known already and not sensitive. */
export function plannedOutputs(plan: TerraformPlan): JsonObject {
  return Object.fromEntries(
    Object.entries(plan.planned_values.outputs).flatMap(([name, { sensitive, value }]): [string, JsonValue][] =>
      sensitive || value === undefined ? [] : [[name, value]],
    ),
  );
}

/** Every value that the program or its providers mark as sensitive. Secret. */
export function planSecrets(plan: TerraformPlan): string[] {
  const variables = Object.entries(plan.configuration.root_module.variables)
    .filter(([, { sensitive }]) => sensitive)
    .flatMap(([name]) => scalarTexts(plan.variables[name]?.value));
  const changes = [
    ...[...plan.resource_changes, ...plan.resource_drift].map(({ change }) => change),
    ...Object.values(plan.output_changes),
  ].flatMap(({ before, after, before_sensitive, after_sensitive }) => [
    ...sensitiveTexts(before, before_sensitive),
    ...sensitiveTexts(after, after_sensitive),
  ]);
  return [...new Set([...variables, ...changes, ...stateSecrets(plan.prior_state?.values?.root_module)])];
}

function stateSecrets(module: TerraformStateModule | undefined): string[] {
  if (!module) return [];
  return [
    ...module.resources.flatMap(({ values, sensitive_values }) => sensitiveTexts(values, sensitive_values)),
    ...module.child_modules.flatMap(stateSecrets),
  ];
}

function objectOrNull(value: JsonValue): JsonObject | null {
  return isJsonObject(value) ? value : null;
}
