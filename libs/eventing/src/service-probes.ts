import { isNativeError } from "node:util/types";
import type { Probe } from "@runtime-cloud/service-kit/health";
import { CREATE } from "@runtime-cloud/state-machines/lifecycle-edges";
import type { Pool } from "pg";
import { within } from "./queues/within.ts";

/** Below the time that a probe has: a database that is too slow must not look like one without tables. */
const ANSWER_MS = 1_000;
/** SQLSTATE undefined_table. */
const UNDEFINED_TABLE = "42P01";

/**
 * What a service can't serve without. Queues are not among them: without them it is late, and nothing else. Only a
 * database that answers, and has no tables, is said to lack its migrations.
 */
export function serviceProbes(pool: Pool): Record<string, Probe> {
  const ask = () => pool.query("SELECT FROM lifecycle_edge WHERE event = $1 LIMIT 1", [CREATE]);
  return {
    database: () => failing(ask(), (error) => !lacksTables(error)),
    "migrations (npm run migrate -- deploy)": () =>
      failing(within(ANSWER_MS, ask(), "the database doesn't answer"), lacksTables),
  };
}

/** Rejects as `asked` does, for the errors that count. */
async function failing(asked: Promise<unknown>, counts: (error: unknown) => boolean): Promise<void> {
  try {
    await asked;
  } catch (error) {
    if (counts(error)) throw error;
  }
}

function lacksTables(error: unknown): boolean {
  return isNativeError(error) && "code" in error && error.code === UNDEFINED_TABLE;
}
