import { isJsonArray, isJsonObject, scalarTexts, type JsonValue } from "../programs/canonical-json.ts";
import { SENSITIVE, UNKNOWN } from "./engine-event.ts";

/** Names whose text is taken for a secret though nobody marked it. */
const SECRET_NAME = /(?:^|[_.-])(?:password|passwd|secret|token|credentials?|(?:private|api|access|secret)[_-]?key)$/i;
const CAMEL_BOUNDARY = /([a-z0-9])([A-Z])/g;

/**
 * A value as it may be shown. `sensitive` and `unknown` are masks as the CLI's plans have them: `true` at the place
 * that is meant, objects and arrays on the way there.
 */
export function mask(
  value: JsonValue | undefined,
  sensitive: JsonValue | undefined,
  unknown: JsonValue | undefined,
): JsonValue {
  if (sensitive === true) return SENSITIVE;
  if (unknown === true) return UNKNOWN;
  if (isJsonArray(value)) {
    return value.map((item, index) => mask(item, at(sensitive, index), at(unknown, index)));
  }
  if (isJsonObject(value) || isJsonObject(unknown)) {
    const keys = new Set([
      ...Object.keys(isJsonObject(value) ? value : {}),
      ...Object.keys(isJsonObject(unknown) ? unknown : {}),
    ]);
    return Object.fromEntries(
      [...keys].map((key) => {
        const member = at(value, key);
        const shown = mask(member, at(sensitive, key), at(unknown, key));
        return [key, typeof shown === "string" && shown !== UNKNOWN && isSecretName(key) ? SENSITIVE : shown];
      }),
    );
  }
  return value ?? null;
}

/** The texts of what a mask marks as sensitive. Secret. */
export function sensitiveTexts(value: JsonValue | undefined, sensitive: JsonValue | undefined): string[] {
  if (sensitive === true) return scalarTexts(value);
  if (isJsonArray(value)) return value.flatMap((item, index) => sensitiveTexts(item, at(sensitive, index)));
  if (isJsonObject(value))
    return Object.entries(value).flatMap(([key, item]) => sensitiveTexts(item, at(sensitive, key)));
  return [];
}

export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name.replace(CAMEL_BOUNDARY, "$1_$2"));
}

function at(value: JsonValue | undefined, key: string | number): JsonValue | undefined {
  if (isJsonArray(value)) return value[Number(key)];
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}
