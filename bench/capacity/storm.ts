import type { Finding, Findings } from "../report.ts";
import { type Contestant, figureOf, type Measured, ratio, takeTurns } from "../rounds.ts";
import type { CapacityServers } from "./capacity-servers.ts";
import { type CapacityService, openCapacityService } from "./capacity-service.ts";
import { BYSTANDER_PAIRS_PER_SECOND } from "./storm-bystander.ts";
import { JOB_CONCURRENCY, stormOfJobs } from "./storm-bullmq.ts";
import { stormOfEtcd } from "./storm-etcd.ts";
import { STORM_POOL_SIZE } from "./storm-leases.ts";
import { stormOfService } from "./storm-service.ts";

export interface StormSizes {
  readonly rounds: number;
  readonly tenants: number;
  /** How many leases are due at once: their rates are compared, so the slower ones have fewer. */
  readonly leases: Readonly<Record<"runtime_cloud" | "bullmq" | "etcd", number>>;
  /** How long the bystander works before the storm. */
  readonly quietSeconds: number;
}

export const STORM_SIZES: Readonly<Record<"full" | "quick", StormSizes>> = {
  full: { rounds: 2, tenants: 200, leases: { runtime_cloud: 50_000, bullmq: 10_000, etcd: 5_000 }, quietSeconds: 5 },
  quick: { rounds: 1, tenants: 200, leases: { runtime_cloud: 5_000, bullmq: 1_500, etcd: 1_500 }, quietSeconds: 2 },
};

/** Many leases that nobody renewed, due at once: how fast they end, and what somebody else notices of it. */
export async function measureStorm(servers: CapacityServers, sizes: StormSizes): Promise<Findings> {
  const databaseUrl = await servers.database("execution-capacity", "storm");
  const jobsDatabaseUrl = await servers.database("execution-capacity", "storm_by_jobs");
  const ours = openCapacityService({ databaseUrl, redisUrl: servers.redisUrl });
  const withoutWakes = openCapacityService({ databaseUrl: jobsDatabaseUrl, connections: JOB_CONCURRENCY });
  try {
    return findings(await takeTurns(contestants(servers, ours, withoutWakes, sizes), sizes.rounds));
  } finally {
    await ours.close();
    await withoutWakes.close();
  }
}

export function describeStorm({ rounds, tenants, leases, quietSeconds }: StormSizes): string {
  const each = Object.entries(leases).map(([name, count]) => `${name} ${count}`);
  return [
    `rounds ${rounds}; leases due at once: ${each.join(", ")}, of ${tenants} tenants in one shared pool of ${STORM_POOL_SIZE}`,
    "from the instant at which all are due to the last committed end; etcd's, with a key each, are due within the second before, and those that are left count",
    `bullmq: a delayed job a lease, concurrency ${JOB_CONCURRENCY}, which ends it at the same desk in a transaction of its own`,
    `bystander: ${BYSTANDER_PAIRS_PER_SECOND} pairs/s in another pool, ${quietSeconds} s before the storm and all through it`,
  ].join("; ");
}

function contestants(
  { redisUrl, etcd }: CapacityServers,
  ours: CapacityService,
  withoutWakes: CapacityService,
  sizes: StormSizes,
): Contestant[] {
  const all = [stormOfService(ours, sizes), stormOfJobs(withoutWakes, redisUrl, sizes)];
  return etcd === undefined ? all : [...all, stormOfEtcd(etcd, sizes)];
}

function findings(measured: Measured): Findings {
  const faster = (peer: string, meaning: string): Finding => ({
    meaning,
    spread: ratio(measured, "expired_per_second", "runtime_cloud", peer),
  });
  return {
    measured,
    headlines: {
      s2_expired_per_second: {
        meaning: "leases that end per second when all are due at once; more is better",
        spread: figureOf(measured, "expired_per_second", "runtime_cloud"),
      },
    },
    ratios: {
      ...(measured["etcd"] && { s2_vs_etcd: faster("etcd", "leases ended per second ÷ etcd's; more is better") }),
      s2_vs_bullmq: faster("bullmq", "leases ended per second ÷ a BullMQ job a lease's; more is better"),
      s2_bystander: {
        meaning: "a bystander's acquire p99 during the storm ÷ before it; near 1 is calm",
        spread: figureOf(measured, "bystander_storm_vs_quiet", "runtime_cloud"),
      },
    },
  };
}
