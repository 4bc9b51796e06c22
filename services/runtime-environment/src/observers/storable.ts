import type { JsonValue } from "@bufbuild/protobuf";

/*
 * PostgreSQL takes neither U+0000 in text nor half a surrogate pair in JSON, and one such value would keep an
 * environment from being observed for good.
 */

/** Text that can be stored, of at most `max` UTF-16 units. */
export function storableText(text: string, max: number): string {
  return text
    .slice(0, max)
    .replaceAll("\u0000", "\uFFFD")
    .replace(/[\uD800-\uDBFF]$/, "");
}

/** JSON that can be stored; one whose text is longer than `max` becomes the beginning of that text. */
export function storableJson(value: JsonValue, max: number): JsonValue {
  const text = JSON.stringify(value);
  if (text.length > max) return `${storableText(text, max)}…`;
  return text.includes("\\u") ? mapStrings(value, (each) => storableText(each, max)) : value;
}

/** Whether a name or version holds nothing but characters that show. */
export function isPrintable(text: string): boolean {
  return !/[\p{Cc}\p{Cs}]/u.test(text);
}

function mapStrings(value: JsonValue, change: (text: string) => string): JsonValue {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), mapStrings(item, change)]));
}
