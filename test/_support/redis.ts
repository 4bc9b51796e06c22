import { randomUUID } from "node:crypto";

import { fromSetUp } from "./environment.ts";

/** The Redis that all test files share, and a prefix for the queues of this one alone. */
export function testRedis(): { readonly url: string; readonly prefix: string } {
  return { url: fromSetUp("TEST_REDIS_URL"), prefix: `{test-${randomUUID().slice(0, 8)}}` };
}
