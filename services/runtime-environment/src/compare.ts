import { isDeepStrictEqual } from "node:util";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** What is known, each fact by its JSON pointer. */
export type Facts = ReadonlyMap<string, JsonValue>;

/** One fact that moved; a side where it wasn't there is null. */
export type Move = { path: string; from: JsonValue; to: JsonValue };

/** What moved between two states of knowledge, by path. */
export function compare(before: Facts, after: Facts): Move[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.flatMap((path) => {
    const from = before.get(path) ?? null;
    const to = after.get(path) ?? null;
    return isDeepStrictEqual(from, to) ? [] : [{ path, from, to }];
  });
}

/** A JSON pointer (RFC 6901). */
export function pointer(...steps: readonly string[]): string {
  return steps.map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** An event holds 64 KiB: enough for these, and for its envelope. */
const MAX_MOVES = 200;
const MAX_MOVES_BYTES = 48 * 1_024;

/** The moves as an event announces them: as many as it holds, and `truncated` says how many were left out. */
export function announcedChanges(moves: readonly Move[]): JsonObject {
  const changes: Move[] = [];
  let bytes = 0;
  for (const move of moves.slice(0, MAX_MOVES)) {
    bytes += Buffer.byteLength(JSON.stringify(move));
    if (bytes > MAX_MOVES_BYTES) break;
    changes.push(move);
  }
  const truncated = moves.length - changes.length;
  return truncated > 0 ? { changes, truncated } : { changes };
}
