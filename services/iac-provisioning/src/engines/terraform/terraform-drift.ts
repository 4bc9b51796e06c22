import type { JsonValue } from "../../json/canonical-json.ts";
import { attributeDifferences } from "../redaction/attribute-path.ts";
import { UNKNOWN, type PlannedChange } from "../engine-event.ts";
import { changesSomething } from "../engine-result.ts";
import type { DriftEntry } from "../engine.ts";
import { summaryOf } from "./terraform-observed.ts";
import type { TerraformPlan } from "./terraform-plan.ts";

/**
 * Drift, read off a plan of the applied specification with the applied parameters. Whatever that plan would change has
 * drifted. What else moved outside (`resource_drift`) counts only where a change depends on it: providers report
 * much that no specification speaks of. The exit code of a refresh-only plan tells nothing and is not asked.
 */
export function terraformDrift({ changes, drift, relevant }: TerraformPlan): DriftEntry[] {
  const declared = changes.filter(changesSomething);
  const changing = new Set(declared.map(({ address }) => address));
  const consequential = drift.filter(({ address }) => !changing.has(address) && relevant.has(withoutKeys(address)));
  return [...declared.flatMap(declaredDifferences), ...consequential.flatMap(observedDifferences)];
}

/** A planned change leads from what is observed to what is declared: drift is told the other way round. */
function declaredDifferences(change: PlannedChange): DriftEntry[] {
  const { actions, before: observed, after: declared } = change;
  if (!observed) return [entry(change, "RESOURCE_MISSING", "", declared, null)];
  if (!declared || actions.includes("forget"))
    return [entry(change, "RESOURCE_UNMANAGED", "", null, summaryOf(observed))];

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

/** `relevant_attributes` name resources without the keys of their instances, and of their modules'. */
function withoutKeys(address: string): string {
  return address.replace(/\[(?:"(?:[^"\\]|\\.)*"|[^\]]*)\]/g, "");
}
