import type { BenchOptions } from "./benchmark.ts";
import { type BacklogSizes, measureBacklog } from "./events/backlog.ts";
import { openBullmqPath } from "./events/bullmq-path.ts";
import { openGraphilePath, openTunedGraphilePath } from "./events/graphile-path.ts";
import { EVENTS_PER_SECOND, type LatencySizes, measureLatency } from "./events/latency.ts";
import { measureMemory, type MemorySizes } from "./events/memory.ts";
import { openOutboxPath } from "./events/outbox-path.ts";
import { type Path, type PathName, withPaths } from "./events/path.ts";
import { openPgBossPath, openTunedPgBossPath } from "./events/pg-boss-path.ts";
import { measureThroughput, type ThroughputSizes, warmUp } from "./events/throughput.ts";
import { describeMachine, joinedFindings, type Results } from "./report.ts";
import { type BenchServers, withServers } from "./servers.ts";

const FULL: Sizes = {
  throughput: {
    rounds: 5,
    sizes: {
      runtime_cloud: 10_000,
      bullmq: 10_000,
      graphile_worker: 2_000,
      graphile_worker_tuned: 10_000,
      pg_boss: 4,
      pg_boss_tuned: 10_000,
    },
  },
  latency: { rounds: 3, seconds: 10 },
  backlog: {
    rounds: 3,
    sizes: [
      { rows: 1_000, repeats: 5 },
      { rows: 10_000, repeats: 1 },
      { rows: 100_000, repeats: 1 },
    ],
  },
  memory: { rounds: 2, sizes: [10_000, 100_000] },
};

const QUICK: Sizes = {
  throughput: {
    rounds: 2,
    sizes: {
      runtime_cloud: 2_000,
      bullmq: 2_000,
      graphile_worker: 300,
      graphile_worker_tuned: 2_000,
      pg_boss: 2,
      pg_boss_tuned: 2_000,
    },
  },
  latency: { rounds: 1, seconds: 3 },
  backlog: {
    rounds: 1,
    sizes: [
      { rows: 1_000, repeats: 2 },
      { rows: 20_000, repeats: 1 },
    ],
  },
  memory: { rounds: 1, sizes: [1_000, 10_000] },
};

/** Those that start soon after a commit; pg-boss's defaults don't, and graphile-worker's are behind at once. */
const IN_TIME: readonly PathName[] = ["runtime_cloud", "bullmq", "graphile_worker_tuned", "pg_boss_tuned"];

/**
 * Events through our outbox, relay and inbox, from their commit to a handler that writes nothing but its receipt, beside
 * the same envelopes as raw BullMQ jobs for a worker that does nothing, and as jobs of graphile-worker and pg-boss for
 * a handler that writes the same receipt. All senders and workers share one process, and the servers share its CPUs.
 */
export async function benchEvents({ quick, log }: BenchOptions): Promise<Results> {
  const sizes = quick ? QUICK : FULL;
  return withServers(async (servers) => {
    const machine = describeMachine(servers.versions);
    const ours = await openOutboxPath(servers);
    try {
      const beside = await withPaths(peers(servers), async (others) => {
        const paths = [ours, ...others];
        log("warming up");
        await warmUp(paths, sizes.throughput.sizes);
        log(`throughput, rounds: ${sizes.throughput.rounds}`);
        const throughput = await measureThroughput(paths, sizes.throughput);
        log(`latency, rounds: ${sizes.latency.rounds}`);
        const latency = await measureLatency(paths.filter(isInTime), sizes.latency);
        return { findings: [throughput, latency], conditions: conditions(sizes, paths) };
      });
      log(`backlog, rounds: ${sizes.backlog.rounds}`);
      const backlog = await measureBacklog(ours, sizes.backlog);
      log(`memory, rounds: ${sizes.memory.rounds}`);
      const memory = await measureMemory(servers, sizes.memory);
      return { quick, machine, conditions: beside.conditions, ...joinedFindings(...beside.findings, backlog, memory) };
    } finally {
      await ours.close();
    }
  });
}

function peers({ redisUrl, emptyDatabase }: BenchServers): (() => Path | Promise<Path>)[] {
  return [
    () => openBullmqPath(redisUrl),
    async () => openGraphilePath(await emptyDatabase("graphile_worker")),
    async () => openTunedGraphilePath(await emptyDatabase("graphile_worker_tuned")),
    async () => openPgBossPath(await emptyDatabase("pg_boss")),
    async () => openTunedPgBossPath(await emptyDatabase("pg_boss_tuned")),
  ];
}

function isInTime({ name }: Path): boolean {
  return IN_TIME.includes(name);
}

function conditions({ throughput, latency, backlog, memory }: Sizes, paths: readonly Path[]): Results["conditions"] {
  const rows = backlog.sizes.map((size) => `${size.rows}${size.repeats > 1 ? ` (${size.repeats} times)` : ""}`);
  return {
    ...Object.fromEntries(paths.map(({ name, about }) => [name, about])),
    durability: "PostgreSQL flushes every commit; Redis keeps nothing",
    handler:
      "writes a receipt for each event, one statement for as many events as it is handed; raw BullMQ's does nothing",
    sending: "one transaction a round, counted from the sending of its COMMIT; raw BullMQ from its first addBulk",
    throughput: `rounds ${throughput.rounds}; events each: ${paths.map(({ name }) => `${name} ${throughput.sizes[name]}`).join(", ")}`,
    latency: `rounds ${latency.rounds}; each ${latency.seconds} s at ${EVENTS_PER_SECOND} events/s, a transaction an event; the first second is counted apart`,
    backlog: `rounds ${backlog.rounds}; rows ${rows.join(", ")}; from the relay's start, on open connections`,
    memory: `rounds ${memory.rounds}; rows ${memory.sizes.join(", ")}; the relay alone in its process`,
  };
}

interface Sizes {
  readonly throughput: ThroughputSizes;
  readonly latency: LatencySizes;
  readonly backlog: BacklogSizes;
  readonly memory: MemorySizes;
}
