import { Counter, Histogram, type Registry } from "prom-client";
import type { Recorded } from "./record-sight.ts";

/** Told of looks, for metrics. */
export interface ObservationMeasures {
  /** What an observer saw, or pushed, was taken in. */
  taken(observer: string, outcome: Recorded["outcome"]): void;
  /** All that an environment's observers saw was taken in so long after the schedule wanted it. */
  late(latenessMs: number): void;
}

const LATENESS_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Registers what an operator watches of looks. */
export function registerObservationMetrics(registry: Registry): ObservationMeasures {
  const registers = [registry];
  const observations = new Counter({
    name: "observations_total",
    help: "Looks that were taken in, by observer and by whether something moved, nothing did, or the look failed",
    labelNames: ["observer", "outcome"],
    registers,
  });
  const ignored = new Counter({
    name: "observations_ignored_total",
    help: "Observations that were older than the observer's last, or than a version that was applied meanwhile, by observer",
    labelNames: ["observer"],
    registers,
  });
  const lateness = new Histogram({
    name: "observation_lateness_seconds",
    help: "From when the schedule wanted a look to when all its observers' sights were taken in",
    buckets: LATENESS_SECONDS,
    registers,
  });
  return {
    taken(observer, outcome) {
      if (outcome === "ignored") ignored.inc({ observer });
      else observations.inc({ observer, outcome });
    },
    late: (latenessMs) => lateness.observe(Math.max(0, latenessMs) / 1_000),
  };
}
