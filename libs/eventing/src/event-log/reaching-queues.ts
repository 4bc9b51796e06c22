import { Unavailable } from "@runtime-cloud/service-kit/errors";
import { within } from "../queues/within.ts";

const ANSWER_MS = 10_000;

/** What only the queues can answer, for a caller who waits for it. Throws Unavailable when they don't. */
export async function reachingQueues<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await within(ANSWER_MS, ask(), "the queues don't answer: try again");
  } catch (cause) {
    if (cause instanceof Unavailable) throw cause;
    throw new Unavailable("the queues are out of reach: try again", { cause });
  }
}
