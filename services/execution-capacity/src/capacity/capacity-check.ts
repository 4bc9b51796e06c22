import { startSweep, type Sweep } from "@runtime-cloud/eventing/sweep";
import { Counter, Gauge, type Registry } from "prom-client";
import { capacityDifferences } from "./capacity-differences.ts";
import type { Context } from "../context.ts";

/** It adds up every active lease, so it is not made for each scrape. */
const EVERY_MS = 5 * 60_000;
/** How many of the differences the log shows. */
const MAX_SHOWN = 20;

/**
 * Compares the counters with the leases from time to time. A difference is a bug: `capacity_differences` must read 0, and
 * `capacity_checks_total` must go up.
 */
export function startCapacityCheck(
  { client, logger }: Pick<Context, "client" | "logger">,
  registry: Registry,
  random: () => number = Math.random,
): Sweep {
  const found = new Gauge({
    name: "capacity_differences",
    help: "Counters that differed from the leases which they stand for at the last check; must be 0",
    registers: [registry],
  });
  const checks = new Counter({
    name: "capacity_checks_total",
    help: "Comparisons of counters with leases, by outcome: equal, different, or failed because they couldn't be made",
    labelNames: ["outcome"],
    registers: [registry],
  });
  return startSweep({
    everyMs: EVERY_MS,
    random,
    async run() {
      try {
        const differences = await capacityDifferences(client);
        found.set(differences.length);
        checks.inc({ outcome: differences.length === 0 ? "equal" : "different" });
        if (differences.length === 0) return;
        const shown = differences.slice(0, MAX_SHOWN);
        logger.error({ count: differences.length, differences: shown }, "capacity counters differ from the leases");
      } catch (err) {
        checks.inc({ outcome: "failed" });
        logger.warn({ err }, "capacity counters can't be compared with the leases now; the next check tries again");
      }
    },
  });
}
