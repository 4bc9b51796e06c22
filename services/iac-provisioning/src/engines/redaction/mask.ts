import { isJsonArray, isJsonObject, scalarTexts, type JsonObject, type JsonValue } from "../../json/canonical-json.ts";
import { SENSITIVE, UNKNOWN } from "../engine-event.ts";

/** Names whose text is taken for a secret though nobody marked it. */
const SECRET_NAME =
  /(?:^|[_.-])(?:passwords?|passwd|secrets?|tokens?|credentials?|(?:private|api|access|secret)[_-]?keys?)$/i;
const CAMEL_BOUNDARY = /([a-z0-9])([A-Z])/g;

/**
 * A value as it may be shown. `sensitive` and `unknown` are masks as the CLI's plans have them: `true` at the place
 * that is meant, objects and arrays on the way there. A set's elements are told by their order, as a list's are.
 */
export function mask(
  value: JsonValue | undefined,
  sensitive: JsonValue | undefined,
  unknown: JsonValue | undefined,
): JsonValue {
  if (sensitive === true) return SENSITIVE;
  if (unknown === true) return UNKNOWN;
  if (isJsonArray(value) || (value === undefined && isJsonArray(unknown))) {
    const length = Math.max(lengthOf(value), lengthOf(unknown));
    return Array.from({ length }, (_, index) => mask(at(value, index), at(sensitive, index), at(unknown, index)));
  }
  if (isJsonObject(value) || (value === undefined && isJsonObject(unknown))) {
    const keys = new Set([...keysOf(value), ...keysOf(unknown)]);
    return Object.fromEntries(
      [...keys].map((key) => {
        const shown = mask(at(value, key), at(sensitive, key), at(unknown, key));
        return [key, isSecretName(key) ? maskTexts(shown) : shown];
      }),
    );
  }
  return value ?? null;
}

/** An object of which everything is sensitive: its names stay. */
export function maskMembers(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.keys(value).map((name) => [name, SENSITIVE]));
}

/** What either of two masks means. Where they don't go together, all of it. */
export function unionMask(a: JsonValue | undefined, b: JsonValue | undefined): JsonValue {
  if (a === true || b === true) return true;
  if (isJsonArray(a) && isJsonArray(b)) {
    const length = Math.max(a.length, b.length);
    return Array.from({ length }, (_, index) => unionMask(a[index], b[index]));
  }
  if (isJsonObject(a) && isJsonObject(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
    return Object.fromEntries([...keys].map((key) => [key, unionMask(at(a, key), at(b, key))]));
  }
  if (isStructure(a) && isStructure(b)) return true;
  return isStructure(a) ? a : isStructure(b) ? b : false;
}

/** The texts of what a mask marks as sensitive. Secret. */
export function sensitiveTexts(value: JsonValue | undefined, sensitive: JsonValue | undefined): string[] {
  if (sensitive === true) return scalarTexts(value);
  if (isJsonArray(value) && isJsonArray(sensitive)) {
    return value.flatMap((item, index) => sensitiveTexts(item, sensitive[index]));
  }
  if (isJsonObject(value) && isJsonObject(sensitive)) {
    return Object.keys(sensitive).flatMap((key) => sensitiveTexts(at(value, key), sensitive[key]));
  }
  return [];
}

export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name.replace(CAMEL_BOUNDARY, "$1_$2"));
}

/** Of a member whose name tells of secrets: its text, or its list of texts. */
function maskTexts(shown: JsonValue): JsonValue {
  if (isJsonArray(shown)) return shown.map((item) => (typeof item === "string" ? maskTexts(item) : item));
  return typeof shown === "string" && shown !== UNKNOWN ? SENSITIVE : shown;
}

function at(value: JsonValue | undefined, key: string | number): JsonValue | undefined {
  if (isJsonArray(value)) return value[Number(key)];
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function lengthOf(value: JsonValue | undefined): number {
  return isJsonArray(value) ? value.length : 0;
}

function keysOf(value: JsonValue | undefined): string[] {
  return isJsonObject(value) ? Object.keys(value) : [];
}

/** Whether a mask leads any further: `{}` and `[]` mean nothing, as `false` does. */
function isStructure(value: JsonValue | undefined): value is JsonObject | readonly JsonValue[] {
  return lengthOf(value) > 0 || keysOf(value).length > 0;
}
