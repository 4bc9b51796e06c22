import { Exhausted } from "@runtime-cloud/service-kit/errors";

/** Of one process. Each holds a page of events at most, and a read for every page that the log grows by. */
const MAX_WATCHERS = 1_000;
const RETRY_MS = 5_000;

/** Counts the watchers of a process. `enter` throws Exhausted when there are as many as there may be. */
export function watcherLimit(most = MAX_WATCHERS): { enter(): () => void } {
  let watching = 0;
  return {
    enter() {
      if (watching >= most) {
        const description = `this process has its ${most} watchers: try again, or ask another replica`;
        throw new Exhausted({ subject: "watchers", description, retryAfterMs: RETRY_MS });
      }
      watching += 1;
      return () => void (watching -= 1);
    },
  };
}
