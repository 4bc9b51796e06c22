import { setTimeout as wait } from "node:timers/promises";
import { classifyDatabaseError } from "@runtime-cloud/service-kit/database-errors";
import type { Context } from "../context.ts";

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

/**
 * Does what an executor owes the database, again and again while the database is away, for as long as the lease of a
 * run lasts that nobody can renew meanwhile. Only for work that changes nothing when it is done twice.
 */
export async function patiently<T>(
  { settings, logger }: Pick<Context, "settings" | "logger">,
  attempt: () => Promise<T>,
): Promise<T> {
  const end = performance.now() + settings.EXECUTOR_LEASE_SECONDS * 1_000;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await attempt();
    } catch (err) {
      if (!isAway(err) || performance.now() + pauseMs > end) throw err;
      logger.warn({ err }, "the database is away: an executor tries again");
      await wait(pauseMs);
    }
  }
}

function isAway(error: unknown): boolean {
  const kind = classifyDatabaseError(error);
  return kind === "unreachable" || kind === "outcome-unknown";
}
