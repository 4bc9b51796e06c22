import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../json/canonical-json.ts";
import { SENSITIVE } from "../engine-event.ts";
import { MIN_NEEDLE_LENGTH, needles } from "./needles.ts";
import { spellings } from "./secret-spellings.ts";

/**
 * Shorter values (`1`, `yes`) would blot out ordinary text, and are no secrets: they are masked where they stand as an
 * attribute, and left alone elsewhere.
 */
const MIN_SECRET_LENGTH = MIN_NEEDLE_LENGTH;

/** Removes known secret values, however they are spelled, from whatever leaves an engine. */
export interface Scrubber {
  text(text: string): string;
  json(value: JsonValue): JsonValue;
  object(value: JsonObject): JsonObject;
}

export function scrubber(secrets: readonly string[]): Scrubber {
  const long = new Set(secrets.filter((secret) => secret.trim().length >= MIN_SECRET_LENGTH));
  const { replace, isEmpty } = needles([...long].flatMap(spellings));
  if (isEmpty) return NOTHING_TO_SCRUB;

  const text = (clear: string) => replace(clear, SENSITIVE);
  const object = (value: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(value).map(([key, member]) => [text(key), json(member)]));
  const json = (value: JsonValue): JsonValue => {
    if (typeof value === "string") return text(value);
    if (typeof value === "number") return text(String(value)) === String(value) ? value : SENSITIVE;
    if (isJsonArray(value)) return value.map(json);
    return isJsonObject(value) ? object(value) : value;
  };
  return { text, json, object };
}

const NOTHING_TO_SCRUB: Scrubber = {
  text: (text) => text,
  json: (value) => value,
  object: (value) => value,
};
