import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { SharedSettings } from "@runtime-cloud/service-kit/settings";
import type pg from "pg";
import { Counter, type Registry } from "prom-client";
import { type Removed, removeEvents, removeKeys, removeReceipts } from "./remove-outlived.ts";
import { startSweep, type Sweep } from "../sweep.ts";

/** How long the database keeps what nobody needs for ever. */
export type KeptDays = Pick<
  SharedSettings,
  "EVENT_RETENTION_DAYS" | "INBOX_RECEIPT_RETENTION_DAYS" | "IDEMPOTENCY_RETENTION_DAYS"
>;

export interface RetentionOptions {
  pool: pg.Pool;
  settings: KeptDays;
  logger: Logger;
  /** Where removed rows are counted. */
  registry: Registry;
  /** Source of the jitter, from 0 to 1. */
  random?: () => number;
}

const SWEEP_MS = 5 * 60_000;
/** Between two batches: whoever waits for the database comes first. */
const YIELD_MS = 20;

/** Removes, now and then, what has outlived its days by the database's clock. Replicas share the work. */
export function startRetention({ pool, settings, logger, registry, random = Math.random }: RetentionOptions): Sweep {
  const removals = removalsOf(pool, settings);
  const counter = new Counter({
    name: "retention_removed_rows_total",
    help: "Rows that outlived their days and were removed, by table",
    labelNames: ["table"],
    registers: [registry],
  });
  const stopping = new AbortController();
  const sweep = startSweep({
    everyMs: SWEEP_MS,
    random,
    async run() {
      for (const [table, removeBatch] of removals) {
        try {
          const removed = await removeAll(removeBatch, stopping.signal);
          counter.inc({ table }, removed);
          if (removed > 0) logger.info({ table, removed }, "rows that outlived their days were removed");
        } catch (err) {
          logger.warn({ err, table }, "rows that outlived their days can't be removed now; the next sweep tries again");
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

/** Removes batch after batch until nothing is left to remove, or the signal is aborted. Answers how many rows. */
export async function removeAll(removeBatch: RemoveBatch, signal: AbortSignal): Promise<number> {
  let total = 0;
  for (let after: bigint | undefined = 0n; after !== undefined && !signal.aborted;) {
    const { removed, next }: Removed = await removeBatch(after);
    total += removed;
    after = next;
    if (after !== undefined) await wait(YIELD_MS, undefined, { signal }).catch(() => undefined);
  }
  return total;
}

export type RemoveBatch = (after: bigint) => Promise<Removed>;

/** By table, in the order of its weight. */
export function removalsOf(pool: pg.Pool, days: KeptDays): [table: string, removeBatch: RemoveBatch][] {
  return [
    ["outbox_message", (after) => removeEvents(pool, days.EVENT_RETENTION_DAYS, after)],
    ["inbox_receipt", () => removeReceipts(pool, days.INBOX_RECEIPT_RETENTION_DAYS)],
    ["idempotency_key", () => removeKeys(pool, days.IDEMPOTENCY_RETENTION_DAYS)],
  ];
}
