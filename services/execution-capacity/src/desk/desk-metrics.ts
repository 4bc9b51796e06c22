import { Histogram, type Registry } from "prom-client";
import type { BatchTold } from "./lease-desk.ts";

const OPERATIONS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];

/** Registers what tells how the desk copes: its batches, and how they were decided. Answers what the desk tells it. */
export function registerDeskMetrics(registry: Registry): BatchTold {
  const labelNames = ["way"] as const;
  const registers = [registry];
  const operations = new Histogram({
    name: "lease_batch_operations",
    help: "Lease operations that were committed together, by whether remembered rows or locked ones decided them",
    buckets: OPERATIONS,
    labelNames,
    registers,
  });
  const seconds = new Histogram({
    name: "lease_batch_seconds",
    help: "How long a batch of lease operations took, its commit included",
    buckets: SECONDS,
    labelNames,
    registers,
  });
  return ({ way, size, elapsedMs }) => {
    operations.observe({ way }, size);
    seconds.observe({ way }, elapsedMs / 1_000);
  };
}
