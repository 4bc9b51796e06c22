import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from "../../json/canonical-json.ts";
import { formatPath } from "../redaction/attribute-path.ts";
import { UNKNOWN, type ChangeAction, type PlannedChange } from "../engine-event.ts";
import { mask, maskMembers, unionMask } from "../redaction/mask.ts";
import { invalidPlan, type TerraformResourceChange } from "./terraform-plan-json.ts";

/** Opened and closed within one command, and recorded nowhere: no change of anything. */
const EPHEMERAL = "ephemeral";

/**
 * A planned change as it may be shown but for secrets that nobody marked: an allow-list of fields, with sensitive and
 * unknown values masked. What is sensitive on one side of the change is masked on both, for a value that was just
 * marked as a secret was one before. Undefined for an ephemeral resource.
 *
 * Throws EngineStopped for an action that is not known: it could do anything.
 */
export function projectChange(planned: TerraformResourceChange): PlannedChange | undefined {
  const { address, type, previous_address, deposed, change, mode } = planned;
  if (mode === EPHEMERAL) return undefined;
  const sensitive = unionMask(change.before_sensitive, change.after_sensitive);
  const reason = reasonOf(planned);
  const importId = importIdOf(change.importing);
  return {
    address,
    resourceType: type,
    actions: change.actions.map((action) => plannedAction(action, address)),
    before: sideOf(change.before, sensitive, undefined),
    after:
      change.after_unknown === true
        ? sideOf(allUnknown(change.before), sensitive, undefined)
        : sideOf(change.after, sensitive, change.after_unknown),
    ...(reason === undefined ? {} : { actionReason: reason }),
    ...(previous_address === undefined ? {} : { previousAddress: previous_address }),
    ...(importId === undefined ? {} : { importId }),
    ...(deposed === undefined ? {} : { deposed }),
  };
}

/** What a refresh-only plan will record: nothing is deleted by it, a resource that is gone is only forgotten. */
export function projectRefresh(drifted: readonly PlannedChange[]): PlannedChange[] {
  return drifted.map((change) => ({
    ...change,
    actions: change.actions.includes("delete") ? ["forget"] : change.actions.includes("no-op") ? ["no-op"] : ["update"],
  }));
}

function plannedAction(action: string, address: string): ChangeAction {
  switch (action) {
    case "no-op":
    case "create":
    case "read":
    case "update":
    case "delete":
    case "forget":
      return action;
    default:
      throw invalidPlan(`${address}: action ${action} is not known to this version, so the plan is refused`);
  }
}

/** The engine's hint, and what it says forces a replacement: `replace_because_cannot_update: ami`. */
function reasonOf({ action_reason, change }: TerraformResourceChange): string | undefined {
  const paths = change.replace_paths.map(formatPath).join(", ");
  if (action_reason === undefined || paths === "") return action_reason;
  return `${action_reason}: ${paths}`;
}

function importIdOf(importing: TerraformResourceChange["change"]["importing"]): string | undefined {
  if (!importing) return undefined;
  if (importing.id !== undefined) return importing.id;
  return importing.identity === undefined ? UNKNOWN : canonicalJson(importing.identity);
}

/** An object, however much of it is masked; null only where there is nothing on this side. */
function sideOf(
  value: JsonValue | undefined,
  sensitive: JsonValue | undefined,
  unknown: JsonValue | undefined,
): JsonObject | null {
  if (!isJsonObject(value)) return null;
  const shown = sensitive === true ? maskMembers(value) : mask(value, sensitive, unknown);
  return isJsonObject(shown) ? shown : null;
}

/** All that can be said of an object of which nothing is known: the names that it had before. */
function allUnknown(before: JsonValue | undefined): JsonObject {
  return Object.fromEntries(Object.keys(isJsonObject(before) ? before : {}).map((name) => [name, UNKNOWN]));
}
