import { Exhausted } from "@runtime-cloud/service-kit/errors";

/** Of one process. Each holds a page of events at most, and a read for every page that the log grows by. */
const MAX_WATCHERS = 1_000;
const RETRY_MS = 5_000;

/**
 * Counts the watchers of a process. `enter` throws Exhausted when there are as many as there may be; a watcher leaves by
 * calling what it answers, or when its call's signal is aborted.
 */
export function watcherLimit(most = MAX_WATCHERS): { enter(signal: AbortSignal): () => void } {
  const watching = new Set<symbol>();
  return {
    enter(signal) {
      if (watching.size >= most) {
        const description = `this process has its ${most} watchers: try again, or ask another replica`;
        throw new Exhausted({ subject: "watchers", description, retryAfterMs: RETRY_MS });
      }
      const watcher = Symbol();
      const leave = () => void watching.delete(watcher);
      if (!signal.aborted) watching.add(watcher);
      signal.addEventListener("abort", leave, { once: true });
      return leave;
    },
  };
}
