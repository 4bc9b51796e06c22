import { setTimeout as wait } from "node:timers/promises";

import type { Findings } from "../report.ts";
import { figureOf, ratio, takeTurns, type Contestant } from "../rounds.ts";
import { quantile } from "../spread.ts";
import { decidedEvents } from "./decided-events.ts";
import type { Path } from "./path.ts";

export interface LatencySizes {
  readonly rounds: number;
  readonly seconds: number;
}

export const EVENTS_PER_SECOND = 200;
/**
 * The others' turns were long enough for a path's idle database connections to be closed. What opening them again costs is
 * a figure of its own.
 */
const SETTLING_SECONDS = 1;
const TIMEOUT_MS = 30_000;

/** One event after the other at a steady rate: how long until its handler starts. */
export async function measureLatency(paths: readonly Path[], { seconds, rounds }: LatencySizes): Promise<Findings> {
  const measured = await takeTurns(
    paths.map((path) => steady(path, seconds)),
    rounds,
  );
  const pace = `at ${EVENTS_PER_SECOND} events/s; less is better`;
  return {
    measured,
    headlines: {
      latency_p50_ms: {
        meaning: `median latency, commit to handler, ${pace}`,
        spread: figureOf(measured, "latency_p50_ms", "runtime_cloud"),
      },
      latency_p99_ms: {
        meaning: `latency that 99 % don't exceed, commit to handler, ${pace}`,
        spread: figureOf(measured, "latency_p99_ms", "runtime_cloud"),
      },
    },
    ratios: {
      latency_vs_bullmq: {
        meaning: `median latency, commit to handler ÷ raw add to handler, ${pace}`,
        spread: ratio(measured, "latency_p50_ms", "runtime_cloud", "bullmq"),
      },
    },
  };
}

/** Sends whether or not the events before are through. */
function steady(path: Path, seconds: number): Contestant {
  return {
    name: path.name,
    async round() {
      const events = decidedEvents(seconds * EVENTS_PER_SECOND);
      path.ledger.clear();
      const sent: Promise<number>[] = [];
      const start = performance.now();
      for (const [index, event] of events.entries()) {
        const early = start + (index * 1_000) / EVENTS_PER_SECOND - performance.now();
        if (early > 0) await wait(early);
        sent.push(path.send([event]));
      }
      const sendingMs = performance.now() - start;
      const sentAt = await Promise.all(sent);
      await path.ledger.finished(events.length, TIMEOUT_MS);
      const latencies = events.map(({ id }, index) => path.ledger.startedAt(id) - (sentAt[index] ?? NaN));
      const settled = latencies.splice(SETTLING_SECONDS * EVENTS_PER_SECOND);
      return {
        figures: {
          latency_p50_ms: quantile(settled, 0.5),
          latency_p99_ms: quantile(settled, 0.99),
          latency_p99_ms_in_first_second: quantile(latencies, 0.99),
          // Below the rate that was asked for, the machine was too busy to send.
          sent_per_second: (events.length - 1) / (sendingMs / 1_000),
        },
        check: () => path.check(events.map(({ id }) => id)),
      };
    },
  };
}
