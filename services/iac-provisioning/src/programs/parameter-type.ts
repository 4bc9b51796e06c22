import { isJsonArray, isJsonObject, type JsonValue } from "../json/canonical-json.ts";

/** What a parameter may be declared as. */
export const PARAMETER_TYPES = ["string", "integer", "number", "boolean", "list", "object"] as const;
export type ParameterType = (typeof PARAMETER_TYPES)[number];

export function isOfType(value: JsonValue, type: ParameterType): boolean {
  if (type === "list") return isJsonArray(value);
  if (type === "object") return isJsonObject(value);
  if (type === "integer") return Number.isSafeInteger(value);
  return typeof value === type;
}

export function typeName(value: JsonValue): string {
  if (value === null) return "null";
  return isJsonArray(value) ? "list" : typeof value;
}
