import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { capacityDifferences } from "@runtime-cloud/execution-capacity/capacity/capacity-differences";
import { z } from "zod";
import { inThousands } from "../events/backlog-rows.ts";
import type { Findings } from "../report.ts";
import { figureOf, type Measured, type Round, takeTurns } from "../rounds.ts";
import type { BenchServers } from "../servers.ts";
import { type CapacityService, openCapacityService } from "./capacity-service.ts";
import { addSharedPool, emptyTables } from "./lease-rows.ts";

export interface MemorySizes {
  readonly rounds: number;
  readonly leases: number;
  readonly renewalsPerSecond: number;
  readonly seconds: number;
}

export const MEMORY_SIZES: Readonly<Record<"full" | "quick", MemorySizes>> = {
  full: { rounds: 1, leases: 100_000, renewalsPerSecond: 1_000, seconds: 10 },
  quick: { rounds: 1, leases: 10_000, renewalsPerSecond: 1_000, seconds: 2 },
};

export const MEMORY_POOL = "memory";
const SERVICE = fileURLToPath(new URL("memory-process.ts", import.meta.url));

/** What `memory-process.ts` tells at its end: resident memory in MiB. */
const reportSchema = z.object({
  beforeMb: z.number(),
  grantedMb: z.number(),
  renewingPeakMb: z.number(),
  renewed: z.number(),
});
export type MemoryReport = z.output<typeof reportSchema>;

/** The service in a process of its own that has granted very many leases, and whose holders renew them. */
export async function measureMemory(servers: BenchServers, sizes: MemorySizes): Promise<Findings> {
  const databaseUrl = await servers.database("execution-capacity", "capacity_memory");
  const beside = openCapacityService({ databaseUrl });
  const name = `service_alone_${inThousands(sizes.leases)}`;
  try {
    const round = () => alone(beside, databaseUrl, servers.redisUrl, sizes);
    return findings(await takeTurns([{ name, round }], sizes.rounds), name, sizes);
  } finally {
    await beside.close();
  }
}

export function describeMemory({ rounds, leases, renewalsPerSecond, seconds }: MemorySizes): string {
  return `rounds ${rounds}; desk, news and deadlines alone in their process, which grants ${leases} leases and then renews ${renewalsPerSecond}/s for ${seconds} s`;
}

function findings(measured: Measured, name: string, { leases, renewalsPerSecond }: MemorySizes): Findings {
  const live = inThousands(leases);
  return {
    measured,
    headlines: {
      [`memory_${live}_leases`]: {
        meaning: `most resident memory of a process with ${live} live leases, at ${renewalsPerSecond} renewals/s, in MiB`,
        spread: figureOf(measured, "rss_renewing_peak_mb", name),
      },
      [`memory_growth_${live}_leases`]: {
        meaning: "how far that lies above the same process before its first lease, in MiB",
        spread: figureOf(measured, "rss_growth_mb", name),
      },
    },
    ratios: {},
  };
}

async function alone(
  { context: { client }, aside: pool }: CapacityService,
  databaseUrl: string,
  redisUrl: string,
  sizes: MemorySizes,
): Promise<Round> {
  await emptyTables(pool);
  await addSharedPool(pool, MEMORY_POOL, sizes.leases);
  const { beforeMb, grantedMb, renewingPeakMb, renewed } = await runService(databaseUrl, redisUrl, sizes);
  return {
    figures: {
      rss_before_mb: beforeMb,
      rss_granted_mb: grantedMb,
      rss_renewing_peak_mb: renewingPeakMb,
      rss_growth_mb: renewingPeakMb - beforeMb,
    },
    async check() {
      const live = await client.capacityLease.count({ where: { state: "ACTIVE" } });
      const wanted = sizes.renewalsPerSecond * sizes.seconds;
      if (live !== sizes.leases || renewed !== wanted) {
        throw new Error(`${live} of ${sizes.leases} leases live, and ${renewed} of ${wanted} were renewed`);
      }
      const [difference] = await capacityDifferences(client);
      if (difference) throw new Error(`a counter differs from its leases: ${JSON.stringify(difference)}`);
    },
  };
}

async function runService(databaseUrl: string, redisUrl: string, sizes: MemorySizes): Promise<MemoryReport> {
  const service = fork(SERVICE, [], {
    execArgv: ["--import", "tsx"],
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      LEASES: String(sizes.leases),
      RENEWALS_PER_SECOND: String(sizes.renewalsPerSecond),
      SECONDS: String(sizes.seconds),
    },
  });
  const ended = once(service, "exit");
  const report = new Promise<unknown>((resolve, reject) => {
    service.once("message", resolve);
    ended.then(([code]) => reject(new Error(`the service's process ended with ${String(code)}`)), reject);
  });
  try {
    return reportSchema.parse(await report);
  } finally {
    await ended;
  }
}
