import { setTimeout as wait } from "node:timers/promises";
import { StoryFailed } from "./narrator.ts";

const LOOK_EVERY_MS = 50;
const DEFAULT_WITHIN_MS = 60_000;

/**
 * Looks until `look` returns something. Throws StoryFailed with what it saw last when that takes too long; an error of
 * `look` itself counts as "not yet", except StoryFailed, which says that it never will.
 */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  withinMs = DEFAULT_WITHIN_MS,
): Promise<T> {
  const deadline = AbortSignal.timeout(withinMs);
  let last = "it never came about";
  while (!deadline.aborted) {
    try {
      const seen = await look();
      if (seen !== undefined) return seen;
    } catch (error) {
      if (error instanceof StoryFailed) throw error;
      last = error instanceof Error ? error.message : String(error);
    }
    await wait(LOOK_EVERY_MS);
  }
  throw new StoryFailed(`${what} within ${withinMs / 1_000} s: ${last}`);
}
