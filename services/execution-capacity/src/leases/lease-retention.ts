import { removeAll, type RemoveBatch } from "@runtime-cloud/eventing/event-log/retention";
import { startSweep, type Sweep } from "@runtime-cloud/eventing/sweep";
import { Counter, type Registry } from "prom-client";
import type { Context } from "../context.ts";
import { removeIdleFlows } from "../queue/idle-flows.ts";
import { forgetHolders, moveEnded, removePast } from "./past-leases.ts";

const SWEEP_MS = 60_000;

type RetentionContext = Pick<Context, "pool" | "settings" | "logger">;

/**
 * Keeps the tables of what lives small: moves ended leases out, and removes what has outlived its days, in bounded
 * batches by the database's clock. Replicas share the work.
 */
export function startLeaseRetention(
  context: RetentionContext,
  registry: Registry,
  random: () => number = Math.random,
): Sweep {
  const { logger } = context;
  const counter = new Counter({
    name: "capacity_retention_rows_total",
    help: "Rows that retention moved out of capacity_lease, or removed from the other tables, by table",
    labelNames: ["table"],
    registers: [registry],
  });
  const stopping = new AbortController();
  const sweep = startSweep({
    everyMs: SWEEP_MS,
    random,
    async run() {
      for (const [table, clear] of tasks(context)) {
        if (stopping.signal.aborted) return;
        try {
          const rows = await clear(stopping.signal);
          counter.inc({ table }, rows);
          if (rows > 0) logger.debug({ table, rows }, "rows that nobody needs there any more are gone");
        } catch (err) {
          logger.warn({ err, table }, "rows that outlived their time stay for now; the next sweep tries again");
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

type Clear = (signal: AbortSignal) => Promise<number>;

function tasks({ pool, settings }: RetentionContext): [table: string, clear: Clear][] {
  const { LEASE_RETENTION_HOURS: hours, PAST_LEASE_DAYS: days } = settings;
  const inBatches =
    (batch: RemoveBatch): Clear =>
    (signal) =>
      removeAll(batch, signal);
  const outlived: [string, Clear][] = [
    ["past_lease", inBatches(() => removePast(pool, days))],
    ["ended_holder", inBatches(() => forgetHolders(pool, days))],
  ];
  return [
    ["capacity_lease", inBatches(() => moveEnded(pool, hours))],
    ...(days > 0 ? outlived : []),
    ["fair_share", (signal) => removeIdleFlows(pool, signal)],
  ];
}
