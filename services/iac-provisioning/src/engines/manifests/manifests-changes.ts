import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from "../../json/canonical-json.ts";
import { attributeDifferences, valueAt } from "../redaction/attribute-path.ts";
import type { ChangeAction, PlannedChange } from "../engine-event.ts";
import type { DriftEntry, EngineMode, ObservedResource } from "../engine.ts";
import { manifestAttributes, manifestType, secretPlaces, shownAttributes } from "./manifest-document.ts";
import type { Scrubber } from "../redaction/scrub.ts";

/** Texts of files by their addresses. */
export type Files = ReadonlyMap<string, string>;

export interface ManifestWorld {
  /** What the program wants; nothing when it is to be destroyed. */
  readonly desired: Files;
  /** What the directory really holds. */
  readonly observed: Files;
  /** What was last applied: only such files are deleted. */
  readonly recorded: Files;
}

/** What has to be done so that the directory holds what the mode wants. Files of others are left alone. */
export function manifestChanges(mode: EngineMode, world: ManifestWorld, scrub: Scrubber): PlannedChange[] {
  const addresses = [...new Set([...world.desired.keys(), ...world.recorded.keys()])].sort();
  return addresses.flatMap((address) => {
    const action = actionFor(mode, address, world);
    return action ? [changeOf(address, action, mode, world, scrub)] : [];
  });
}

/**
 * How the directory differs from what the applied specification says. The rendering is the measure, not the record,
 * so a lost record or a half-done apply hides nothing. A change of format or comments is no drift.
 */
export function manifestDrift(desired: Files, observed: Files, scrub: Scrubber): DriftEntry[] {
  const declared = [...desired].flatMap(([address, text]): DriftEntry[] => {
    const secret = secretPlaces(manifestAttributes(address, text), scrub);
    const wanted = shownOf(address, text, scrub, secret);
    const seen = observed.get(address);
    const resource = { address, resourceType: manifestType(wanted) };
    if (seen === undefined) {
      return [{ ...resource, kind: "RESOURCE_MISSING", attributePath: "", before: wanted, after: null }];
    }
    const really = shownOf(address, seen, scrub, secret);
    return attributeDifferences(manifestAttributes(address, text), manifestAttributes(address, seen)).map(
      ({ path, keys }) => ({
        ...resource,
        kind: "ATTRIBUTE_CHANGED",
        attributePath: path,
        before: valueAt(wanted, keys),
        after: valueAt(really, keys),
      }),
    );
  });
  const unmanaged = [...observed]
    .filter(([address]) => !desired.has(address))
    .map(([address, text]): DriftEntry => {
      const attributes = shownOf(address, text, scrub);
      const resource = { address, resourceType: manifestType(attributes) };
      return { ...resource, kind: "RESOURCE_UNMANAGED", attributePath: "", before: null, after: summaryOf(attributes) };
    });
  return [...declared, ...unmanaged];
}

export function manifestResources(observed: Files, scrub: Scrubber): ObservedResource[] {
  return [...observed].map(([address, text]) => {
    const attributes = shownOf(address, text, scrub);
    return { address, resourceType: manifestType(attributes), id: address, attributes: summaryOf(attributes) };
  });
}

/** A file that was applied, is no longer wanted and is gone already is only forgotten. */
function actionFor(mode: EngineMode, address: string, world: ManifestWorld): ChangeAction | undefined {
  const observed = world.observed.get(address);
  const recorded = world.recorded.get(address);
  if (mode === "REFRESH_ONLY") {
    if (recorded === undefined) return undefined;
    return observed === undefined ? "forget" : sameOrUpdate(address, recorded, observed);
  }
  const desired = world.desired.get(address);
  if (desired === undefined) return observed === undefined ? "forget" : "delete";
  return observed === undefined ? "create" : sameOrUpdate(address, observed, desired);
}

function sameOrUpdate(address: string, a: string, b: string): ChangeAction {
  const same = canonicalJson(manifestAttributes(address, a)) === canonicalJson(manifestAttributes(address, b));
  return same ? "no-op" : "update";
}

function changeOf(
  address: string,
  action: ChangeAction,
  mode: EngineMode,
  { desired, observed, recorded }: ManifestWorld,
  scrub: Scrubber,
): PlannedChange {
  const [from, to] = mode === "REFRESH_ONLY" ? [recorded, observed] : [observed, desired];
  const wanted = desired.get(address);
  const secret = wanted === undefined ? {} : secretPlaces(manifestAttributes(address, wanted), scrub);
  const show = (text: string | undefined) => (text === undefined ? null : shownOf(address, text, scrub, secret));
  const before = show(from.get(address));
  const after = show(to.get(address));
  return { address, resourceType: manifestType(after ?? before ?? {}), actions: [action], before, after };
}

function shownOf(address: string, text: string, scrub: Scrubber, secret: JsonValue = {}): JsonObject {
  return scrub.object(shownAttributes(manifestAttributes(address, text), secret));
}

/** What tells one manifest from another at a glance. */
function summaryOf({ apiVersion, kind, metadata, spec }: JsonObject): JsonObject {
  const facts: [string, JsonValue | undefined][] = [
    ["apiVersion", apiVersion],
    ["kind", kind],
    ["name", isJsonObject(metadata) ? metadata.name : undefined],
    ["namespace", isJsonObject(metadata) ? metadata.namespace : undefined],
    ["replicas", isJsonObject(spec) ? spec.replicas : undefined],
  ];
  return Object.fromEntries(
    facts.flatMap(([name, value]): [string, JsonValue][] =>
      value === undefined || value === null || typeof value === "object" ? [] : [[name, value]],
    ),
  );
}
