import type { Pool } from "pg";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { InboxOutcome } from "./inbox.ts";
import type { OutboxLag, Relay } from "./relay.ts";

const LATENESS_BUCKETS_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300];

/** Registers what an operator watches of events and deadlines; the result is told what happens. */
export function serviceMetrics(registry: Registry, relay: Relay, pool: Pool) {
  const inboxEvents = new Counter({
    name: "inbox_events_total",
    help: "Deliveries that were taken in, by topic and how they ended",
    labelNames: ["topic", "outcome"],
    registers: [registry],
  });
  const lateness = new Histogram({
    name: "deadline_lateness_seconds",
    help: "From a deadline's instant to its wake-up, by the database's clock",
    labelNames: ["kind"],
    buckets: LATENESS_BUCKETS_SECONDS,
    registers: [registry],
  });
  const outbox = (name: string, help: string, read: (lag: OutboxLag) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        // Without a database there is no figure; the other metrics are wanted all the more.
        const lag = await relay.lag().catch(() => undefined);
        if (lag) this.set(read(lag));
      },
    });
  outbox("outbox_unpublished", "Events that wait to be published", (lag) => lag.waiting);
  outbox("outbox_oldest_unpublished_seconds", "Age of the oldest of them", (lag) => lag.oldestSeconds);
  new Gauge({
    name: "database_pool_connections",
    help: "Connections of the pool, and callers that wait for one",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      this.set({ state: "open" }, pool.totalCount);
      this.set({ state: "idle" }, pool.idleCount);
      this.set({ state: "waited-for" }, pool.waitingCount);
    },
  });
  return {
    inbox: (outcome: InboxOutcome, topic: string) => inboxEvents.inc({ outcome, topic }),
    deadline: (kind: string, measured: { latenessMs: number }) =>
      lateness.observe({ kind }, measured.latenessMs / 1_000),
  };
}
