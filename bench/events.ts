import { setTimeout as wait } from "node:timers/promises";

import type { BenchOptions } from "./benchmark.ts";
import { openBullmqPath } from "./events/bullmq-path.ts";
import { decidedEvents } from "./events/decided-events.ts";
import { openOutboxPath } from "./events/outbox-path.ts";
import type { Path } from "./events/path.ts";
import { describeMachine, type Results } from "./report.ts";
import { ratio, takeTurns, type Contestant } from "./rounds.ts";
import { withServers } from "./servers.ts";
import { quantile } from "./spread.ts";

const FULL = { rounds: 5, backlog: 10_000, latencySeconds: 10 };
const QUICK = { rounds: 3, backlog: 2_000, latencySeconds: 3 };
/** Until the code is compiled, the connections are there and the statements are planned. */
const WARM_UP_EVENTS = 1_000;
const EVENTS_PER_SECOND = 200;
const CONCURRENCY = 8;
const BACKLOG_TIMEOUT_MS = 120_000;
const LATENCY_TIMEOUT_MS = 30_000;

/**
 * Events through our outbox, relay and inbox, from their commit to a handler that writes nothing but its receipt,
 * beside the same envelopes as raw BullMQ jobs for a worker that does nothing. All senders and workers share one process,
 * and the servers share its CPUs.
 */
export async function benchEvents({ quick, log }: BenchOptions): Promise<Results> {
  const size = quick ? QUICK : FULL;
  return withServers(async (servers) => {
    const machine = describeMachine(servers.versions);
    const paths: Path[] = [];
    try {
      paths.push(await openOutboxPath(servers, CONCURRENCY), openBullmqPath(servers.redisUrl, CONCURRENCY));
      const contestants = (make: (path: Path) => Contestant) => paths.map(make);
      log("warming up");
      await takeTurns(
        contestants((path) => backlog(path, WARM_UP_EVENTS)),
        1,
      );
      log(`throughput: ${size.rounds} rounds of ${size.backlog} events`);
      const throughput = await takeTurns(
        contestants((path) => backlog(path, size.backlog)),
        size.rounds,
      );
      log(`latency: ${size.rounds} rounds of ${size.latencySeconds} s at ${EVENTS_PER_SECOND} events/s`);
      const latency = await takeTurns(
        contestants((path) => steady(path, size.latencySeconds)),
        size.rounds,
      );
      return {
        quick,
        machine,
        conditions: {
          ...size,
          eventsPerSecond: EVENTS_PER_SECOND,
          concurrency: CONCURRENCY,
          durability: "PostgreSQL flushes every commit; Redis keeps nothing",
        },
        measured: Object.fromEntries(paths.map(({ name }) => [name, { ...throughput[name], ...latency[name] }])),
        ratios: {
          relay_vs_bullmq: {
            meaning: "events per second, outbox to handled ÷ raw addBulk to done; more is better",
            spread: ratio(throughput, "events_per_second", "runtime_cloud", "bullmq"),
          },
          latency_vs_bullmq: {
            meaning: "median latency, commit to handler ÷ raw add to handler; less is better",
            spread: ratio(latency, "latency_p50_ms", "runtime_cloud", "bullmq"),
          },
        },
      };
    } finally {
      for (const path of paths.reverse()) await path.close();
    }
  });
}

/** Many events at once: how fast they are worked off. */
function backlog(path: Path, count: number): Contestant {
  return {
    name: path.name,
    async round() {
      const events = decidedEvents(count);
      path.ledger.clear();
      const sent = await path.send(events);
      const seconds = ((await path.ledger.finished(count, BACKLOG_TIMEOUT_MS)) - sent) / 1_000;
      return { figures: { events_per_second: count / seconds }, check: () => path.check(events) };
    },
  };
}

/** One event after the other at a steady rate, whether or not the ones before are through. */
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
      await path.ledger.finished(events.length, LATENCY_TIMEOUT_MS);
      const latencies = events.map(({ id }, index) => path.ledger.startedAt(id) - (sentAt[index] ?? NaN));
      return {
        figures: {
          latency_p50_ms: quantile(latencies, 0.5),
          latency_p99_ms: quantile(latencies, 0.99),
          // Below the rate that was asked for, the machine was too busy to send.
          sent_per_second: (events.length - 1) / (sendingMs / 1_000),
        },
        check: () => path.check(events),
      };
    },
  };
}
