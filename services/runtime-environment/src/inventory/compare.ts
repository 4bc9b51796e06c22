import { isDeepStrictEqual } from "node:util";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** What is known, each fact by its JSON pointer. */
export type Facts = ReadonlyMap<string, JsonValue>;

/** One fact that moved; a side where it wasn't there is null. */
export type Move = { path: string; from: JsonValue; to: JsonValue };

/** What moved between two states of knowledge, by path. */
export function compare(before: Facts, after: Facts): Move[] {
  const moves: Move[] = [];
  for (const [path, to] of after) {
    const from = before.get(path) ?? null;
    if (!isDeepStrictEqual(from, to)) moves.push({ path, from, to });
  }
  for (const [path, from] of before) {
    if (from !== null && !after.has(path)) moves.push({ path, from, to: null });
  }
  return inOrder(moves);
}

export function inOrder(moves: readonly Move[]): Move[] {
  return [...moves].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** A JSON pointer (RFC 6901). */
export function pointer(...steps: readonly string[]): string {
  return steps.map((step) => `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** An event holds 64 KiB: enough for these, and for its envelope. */
const ANNOUNCED = { count: 200, bytes: 48 * 1_024 };

/** The moves as an event announces them: as many as it holds, and `truncated` says how many were left out. */
export function announcedChanges(moves: readonly Move[]): JsonObject {
  const changes = fitting(moves, ANNOUNCED);
  const truncated = moves.length - changes.length;
  return truncated > 0 ? { changes, truncated } : { changes };
}

/** The first of the moves, no more than `count` of them, and no more than `bytes` of JSON. */
export function fitting(moves: readonly Move[], { count, bytes }: { count: number; bytes: number }): Move[] {
  const first = moves.slice(0, count);
  let size = 0;
  const end = first.findIndex((move) => (size += Buffer.byteLength(JSON.stringify(move))) > bytes);
  return end < 0 ? first : first.slice(0, end);
}
