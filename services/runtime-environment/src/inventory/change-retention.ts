import { removeAll, type RemoveBatch } from "@runtime-cloud/eventing/event-log/retention";
import type { Removed } from "@runtime-cloud/eventing/event-log/remove-outlived";
import { startSweep, type Sweep } from "@runtime-cloud/eventing/sweep";
import type pg from "pg";
import { Counter, type Registry } from "prom-client";
import type { Context } from "../context.ts";

/** Of one environment, the newest. */
export const KEPT_CHANGES = 10_000;
/** Rows of one statement, so that it is short however much there is to remove. */
const BATCH = 1_000;
const SWEEP_MS = 5 * 60_000;

type RetentionContext = Pick<Context, "pool" | "settings" | "logger">;

/**
 * Removes, now and then and in bounded batches, the changes of environments that have outlived CHANGE_RETENTION_DAYS by
 * the database's clock, and those beyond the newest {@link KEPT_CHANGES}. Replicas share the work.
 */
export function startChangeRetention(
  { pool, settings, logger }: RetentionContext,
  registry: Registry,
  random: () => number = Math.random,
): Sweep {
  const counter = new Counter({
    name: "inventory_changes_removed_total",
    help: "Changes of environments that retention removed, by why: they were too old, or too many",
    labelNames: ["reason"],
    registers: [registry],
  });
  const removals: [reason: string, removeBatch: RemoveBatch][] = [
    ["age", () => removeOldChanges(pool, settings.CHANGE_RETENTION_DAYS)],
    ["number", () => removeSurplusChanges(pool, KEPT_CHANGES)],
  ];
  const stopping = new AbortController();
  const sweep = startSweep({
    everyMs: SWEEP_MS,
    random,
    async run() {
      for (const [reason, removeBatch] of removals) {
        try {
          const removed = await removeAll(removeBatch, stopping.signal);
          counter.inc({ reason }, removed);
          if (removed > 0) logger.info({ reason, removed }, "changes of environments that nobody needs are gone");
        } catch (err) {
          logger.warn({ err, reason }, "changes of environments can't be removed now; the next sweep tries again");
        }
      }
    },
  });
  return {
    stop() {
      stopping.abort();
      return sweep.stop();
    },
  };
}

/** Removes changes that were recorded longer ago than that. */
export async function removeOldChanges(pool: pg.Pool, days: number): Promise<Removed> {
  const { rowCount } = await pool.query(
    `DELETE FROM inventory_change WHERE (inventory_id, revision) IN (
       SELECT inventory_id, revision FROM inventory_change
       WHERE at < statement_timestamp() - make_interval(days => $1)
       ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
     )`,
    [days, BATCH],
  );
  return whileFull(rowCount);
}

/** Removes the changes of each environment that come before its newest `kept`. */
export async function removeSurplusChanges(pool: pg.Pool, kept: number): Promise<Removed> {
  const { rowCount } = await pool.query(
    `DELETE FROM inventory_change WHERE (inventory_id, revision) IN (
       SELECT surplus.inventory_id, surplus.revision
       FROM inventory CROSS JOIN LATERAL (
         SELECT inventory_id, revision FROM inventory_change
         WHERE inventory_id = inventory.id AND revision <= inventory.revision - $1::bigint
         ORDER BY revision LIMIT $2 FOR UPDATE SKIP LOCKED
       ) surplus
       WHERE inventory.revision > $1::bigint
       LIMIT $2
     )`,
    [kept, BATCH],
  );
  return whileFull(rowCount);
}

function whileFull(rowCount: number | null): Removed {
  const removed = rowCount ?? 0;
  return { removed, next: removed === BATCH ? 0n : undefined };
}
