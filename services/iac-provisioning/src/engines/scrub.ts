import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../programs/canonical-json.ts";
import { SENSITIVE } from "./engine-event.ts";

/** Shorter values (`1`, `yes`) would blot out ordinary text, and are no secrets. */
const MIN_SECRET_LENGTH = 4;
/** Lines of a multi-line secret (a private key) come in separate log lines. */
const MIN_SECRET_LINE_LENGTH = 8;

/** Removes known secret values, and their base64 and JSON spellings, from whatever leaves an engine. */
export interface Scrubber {
  text(text: string): string;
  json(value: JsonValue): JsonValue;
  object(value: JsonObject): JsonObject;
}

export function scrubber(secrets: readonly string[]): Scrubber {
  const needles = [...new Set(secrets.filter((secret) => secret.length >= MIN_SECRET_LENGTH).flatMap(spellings))];
  needles.sort((a, b) => b.length - a.length);
  const pattern = needles.length > 0 ? new RegExp(needles.map(escapeRegExp).join("|"), "g") : undefined;

  const text = (clear: string) => (pattern ? clear.replace(pattern, SENSITIVE) : clear);
  const object = (value: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(value).map(([key, member]) => [text(key), json(member)]));
  const json = (value: JsonValue): JsonValue => {
    if (typeof value === "string") return text(value);
    if (typeof value === "number") return pattern && text(String(value)) !== String(value) ? SENSITIVE : value;
    if (isJsonArray(value)) return value.map(json);
    return isJsonObject(value) ? object(value) : value;
  };
  return { text, json, object };
}

function spellings(secret: string): string[] {
  const lines = secret.split(/\r?\n/).filter((line) => line.length >= MIN_SECRET_LINE_LENGTH);
  const encoded = Buffer.from(secret).toString("base64").replace(/=+$/, "");
  return [secret, JSON.stringify(secret).slice(1, -1), encoded, ...lines];
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
