import { isJsonObject, type JsonObject, type JsonValue } from "../programs/canonical-json.ts";
import { attributeDifferences } from "./attribute-path.ts";
import { UNKNOWN, type PlannedChange } from "./engine-event.ts";
import { changesSomething } from "./engine-result.ts";
import type { DriftEntry, ObservedResource } from "./engine.ts";
import { mask } from "./mask.ts";
import type { TerraformPlan, TerraformStateModule } from "./terraform-plan-json.ts";
import { projectChange, projectChanges } from "./terraform-plan-projection.ts";

const MAX_SUMMARY_ATTRIBUTES = 32;
const MAX_SUMMARY_VALUE_LENGTH = 256;

/**
 * Drift, read off a plan of the applied specification with the applied parameters. Whatever that plan would change has
 * drifted. What else moved outside (`resource_drift`) counts only where a change depends on it: providers report
 * much that no specification speaks of. The exit code of a refresh-only plan tells nothing and is not asked.
 */
export function terraformDrift(plan: TerraformPlan): DriftEntry[] {
  const changes = projectChanges(plan).filter(changesSomething);
  const changing = new Set(changes.map(({ address }) => address));
  const relevant = new Set(plan.relevant_attributes.map(({ resource }) => resource));
  const consequential = plan.resource_drift
    .filter(({ address }) => !changing.has(address) && relevant.has(withoutKeys(address)))
    .flatMap((drift) =>
      observedDifferences(projectChange(drift, drift.change.actions.includes("delete") ? ["delete"] : ["update"])),
    );
  return [...changes.flatMap(declaredDifferences), ...consequential];
}

/** The resources of the refreshed state. */
export function observedResources(plan: TerraformPlan): ObservedResource[] {
  return resourcesOf(plan.prior_state?.values?.root_module);
}

/** A planned change leads from what is observed to what is declared: drift is told the other way round. */
function declaredDifferences(change: PlannedChange): DriftEntry[] {
  const { actions, before: observed, after: declared } = change;
  if (!observed) return [entry(change, "RESOURCE_MISSING", "", declared, null)];
  if (!declared || actions.includes("forget"))
    return [entry(change, "RESOURCE_UNMANAGED", "", null, summarize(observed))];

  const differences = attributeDifferences(declared, observed).filter(({ before }) => before !== UNKNOWN);
  if (differences.length === 0) {
    return [entry(change, "ATTRIBUTE_CHANGED", "", "as applied", change.actionReason ?? actions.join(", "))];
  }
  return differences.map(({ path, before, after }) => entry(change, "ATTRIBUTE_CHANGED", path, before, after));
}

function observedDifferences(drift: PlannedChange): DriftEntry[] {
  if (!drift.after) return [entry(drift, "RESOURCE_MISSING", "", drift.before, null)];
  return attributeDifferences(drift.before ?? undefined, drift.after).map(({ path, before, after }) =>
    entry(drift, "ATTRIBUTE_CHANGED", path, before, after),
  );
}

function entry(
  { address, resourceType }: PlannedChange,
  kind: DriftEntry["kind"],
  attributePath: string,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
): DriftEntry {
  return { address, resourceType, kind, attributePath, before: before ?? null, after: after ?? null };
}

function resourcesOf(module: TerraformStateModule | undefined): ObservedResource[] {
  if (!module) return [];
  const own = module.resources
    .filter(({ mode }) => mode === "managed")
    .map(({ address, type, values, sensitive_values }) => {
      const shown = mask(values, sensitive_values, undefined);
      const id = isJsonObject(shown) && typeof shown.id === "string" ? shown.id : address;
      return { address, resourceType: type, id, attributes: isJsonObject(shown) ? summarize(shown) : {} };
    });
  return [...own, ...module.child_modules.flatMap(resourcesOf)];
}

function summarize(attributes: JsonObject): JsonObject {
  const scalars = Object.entries(attributes).flatMap(([name, value]): [string, JsonValue][] => {
    if (value === null || typeof value === "object") return [];
    return [[name, typeof value === "string" ? value.slice(0, MAX_SUMMARY_VALUE_LENGTH) : value]];
  });
  return Object.fromEntries(scalars.slice(0, MAX_SUMMARY_ATTRIBUTES));
}

/** `relevant_attributes` name resources without the keys of their instances. */
function withoutKeys(address: string): string {
  return address.replace(/\[[^\]]*\]$/, "");
}
