import { createHash } from "node:crypto";

/** Anything that JSON can say. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/**
 * One text per JSON value, whatever order its keys came in: what digests and comparisons are taken over.
 * Keys are sorted by UTF-16 code unit; arrays keep their order.
 */
export function canonicalJson(value: JsonValue): string {
  if (isJsonArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
  return `{${members.join(",")}}`;
}

/** `sha256:<64 hex digits>` of a text (as UTF-8) or of bytes. */
export function sha256(content: string | Uint8Array): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Every string and number inside a value, as text. */
export function scalarTexts(value: JsonValue | undefined): string[] {
  if (isJsonArray(value)) return value.flatMap(scalarTexts);
  if (isJsonObject(value)) return Object.values(value).flatMap(scalarTexts);
  return typeof value === "string" || typeof value === "number" ? [String(value)] : [];
}
