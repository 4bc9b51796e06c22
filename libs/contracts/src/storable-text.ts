import type { DescMessage, Message } from "@bufbuild/protobuf";
import { isReflectList, isReflectMap, isReflectMessage, type Path, reflect } from "@bufbuild/protobuf/reflect";
import { isIgnored } from "./ignored-fields.ts";

/** A string that PostgreSQL can't hold, and where it is in its message. */
export interface UnstorableText {
  path: Path;
  problem: string;
}

/** How many are named at most, since each adds to the answer's size. */
const MAX_FOUND = 16;

/**
 * What keeps a string out of PostgreSQL, which has no NUL in text and takes no half of a surrogate pair in JSON;
 * undefined when nothing does.
 */
export function textProblem(text: string): string | undefined {
  if (text.includes("\0")) return "holds a NUL character (U+0000), which can't be stored";
  if (/\p{Surrogate}/u.test(text)) return "holds half of a surrogate pair, which is no character";
  return undefined;
}

/**
 * The first strings of a message that can't be stored: in fields, lists, maps (keys too) and nested messages, except in
 * fields that validation ignores.
 */
export function unstorableTexts(schema: DescMessage, message: Message): UnstorableText[] {
  const found: UnstorableText[] = [];
  look(reflect(schema, message), [], found);
  return found;
}

function look(value: unknown, path: Path, found: UnstorableText[]): void {
  if (found.length >= MAX_FOUND) return;
  if (typeof value === "string") {
    const problem = textProblem(value);
    if (problem !== undefined) found.push({ path, problem });
  } else if (isReflectMessage(value)) {
    for (const field of value.fields) {
      if (value.isSet(field) && !isIgnored(field)) look(value.get(field), [...path, field], found);
    }
  } else if (isReflectList(value)) {
    for (const [index, item] of value.entries()) look(item, [...path, { kind: "list_sub", index }], found);
  } else if (isReflectMap(value)) {
    for (const [key, item] of value) {
      const entry: Path = [...path, { kind: "map_sub", key: String(key) }];
      look(key, entry, found);
      look(item, entry, found);
    }
  }
}
