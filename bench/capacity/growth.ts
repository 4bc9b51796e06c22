import type { Findings } from "../report.ts";
import { ratio, takeTurns } from "../rounds.ts";
import { afterCheckpoints } from "./after-checkpoint.ts";
import type { CapacityServers } from "./capacity-servers.ts";
import { hotDatabase } from "./hot-database.ts";
import { CALLERS } from "./hot-tenant.ts";
import { withLeasePaths } from "./lease-path.ts";
import { pairs } from "./pairs.ts";
import { openServicePath } from "./service-path.ts";

export interface GrowthSizes {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Ended leases that the table holds, the fewest first. */
  readonly endedLeases: readonly number[];
}

export const GROWTH_SIZES: Readonly<Record<"full" | "quick", GrowthSizes>> = {
  full: { rounds: 3, seconds: 3, warmUpSeconds: 1, endedLeases: [1_000, 100_000, 1_000_000] },
  quick: { rounds: 1, seconds: 1, warmUpSeconds: 0.25, endedLeases: [1_000, 50_000] },
};

const THOUSAND = 1_000;
const MILLION = 1_000_000;

/** The hot tenant in tables that hold ever more leases that have ended. */
export async function measureGrowth(servers: CapacityServers, sizes: GrowthSizes): Promise<Findings> {
  const { endedLeases, rounds, seconds, warmUpSeconds } = sizes;
  const openers = endedLeases.map((ended) => async () => {
    const name = `growth_${shortly(ended)}`;
    return { ...(await openServicePath(await hotDatabase(servers, name, ended))), name };
  });
  const measured = await withLeasePaths(openers, async (paths) => {
    const contestants = (each: number) => paths.map((path) => pairs(path, { callers: CALLERS, seconds: each }));
    return afterCheckpoints(await servers.emptyDatabase("checkpoints"), async (afterCheckpoint) => {
      await takeTurns(contestants(warmUpSeconds), 1);
      return takeTurns(contestants(seconds).map(afterCheckpoint), rounds);
    });
  });
  const [fewest, most] = [endedLeases.at(0), endedLeases.at(-1)].map((ended) => shortly(ended ?? 0));
  return {
    measured,
    headlines: {},
    ratios: {
      [`growth_${most}_vs_${fewest}`]: {
        meaning: `acquire-release pairs per second, ${most} ended leases in the table ÷ ${fewest}; near 1 is good`,
        spread: ratio(measured, "pairs_per_second", `growth_${most}`, `growth_${fewest}`),
      },
    },
  };
}

/** `100k`, `1m` */
function shortly(count: number): string {
  return count < MILLION ? `${count / THOUSAND}k` : `${count / MILLION}m`;
}
