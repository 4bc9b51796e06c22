import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../json/canonical-json.ts";
import type { PlannedChange } from "../engine-event.ts";
import type { Scrubber } from "./scrub.ts";

/** The longest text of an attribute that is shown, its note included; a longer one is cut. */
export const MAX_TEXT_LENGTH = 16 * 1024;
/** The largest change that is shown, `before` and `after` together, in bytes of JSON. */
export const MAX_CHANGE_BYTES = 256 * 1024;

const NOTE_LENGTH = 40;
/** What PostgreSQL's jsonb cannot hold: the zero character, and halves of surrogate pairs (a cut may leave one). */
const UNSTORABLE = new RegExp("[\\u0000\\p{Surrogate}]", "gu");
const REPLACEMENT = "\ufffd";

/**
 * A planned change as it is stored and shown: known secrets scrubbed, and bounded, whatever its provider puts into it.
 * A text over MAX_TEXT_LENGTH is cut and says by how much; of a change over MAX_CHANGE_BYTES the largest attributes are
 * left out, one after the other, with a note in their place.
 */
export function shownChange(change: PlannedChange, scrub: Scrubber): PlannedChange {
  const { before, after, actionReason, importId } = change;
  return bounded({
    ...change,
    before: before && scrub.object(before),
    after: after && scrub.object(after),
    ...(actionReason === undefined ? {} : { actionReason: boundedText(scrub.text(actionReason)) }),
    ...(importId === undefined ? {} : { importId: boundedText(scrub.text(importId)) }),
  });
}

/** The same for a change whose secrets are scrubbed already. */
export function bounded(change: PlannedChange): PlannedChange {
  const before = change.before && boundedObject(change.before);
  const after = change.after && boundedObject(change.after);
  return { ...change, ...withoutLargest(before, after) };
}

function withoutLargest(before: JsonObject | null, after: JsonObject | null): Pick<PlannedChange, "before" | "after"> {
  let excess = sizeOf(before) + sizeOf(after) - MAX_CHANGE_BYTES;
  if (excess <= 0) return { before, after };
  const sides = { before: { ...before }, after: { ...after } };
  const attributes = [...attributesOf("before", before), ...attributesOf("after", after)];
  for (const { side, name, size } of attributes.sort((a, b) => b.size - a.size)) {
    if (excess <= 0) break;
    const note = `(left out: ${size} bytes)`;
    sides[side][name] = note;
    excess -= size - note.length;
  }
  return { before: before && sides.before, after: after && sides.after };
}

function attributesOf(side: "before" | "after", attributes: JsonObject | null) {
  return Object.entries(attributes ?? {}).map(([name, value]) => ({ side, name, size: sizeOf(value) }));
}

function sizeOf(value: JsonValue): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function boundedJson(value: JsonValue): JsonValue {
  if (typeof value === "string") return boundedText(value);
  if (isJsonArray(value)) return value.map(boundedJson);
  return isJsonObject(value) ? boundedObject(value) : value;
}

function boundedObject(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [boundedText(key), boundedJson(member)]));
}

function boundedText(text: string): string {
  if (text.length <= MAX_TEXT_LENGTH) return storable(text);
  const kept = text.slice(0, MAX_TEXT_LENGTH - NOTE_LENGTH);
  return storable(`${kept}(… ${text.length - kept.length} more characters)`);
}

function storable(text: string): string {
  return text.replace(UNSTORABLE, REPLACEMENT);
}
