import { setTimeout as wait } from "node:timers/promises";

import { databaseNow } from "@runtime-cloud/eventing/database-clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { Findings } from "../report.ts";
import { type Contestant, figureOf, type Measured, ratio, type Round, takeTurns } from "../rounds.ts";
import type { BenchServers } from "../servers.ts";
import { quantile, type Spread } from "../spread.ts";
import { type CapacityService, openCapacityService } from "./capacity-service.ts";
import { HOLD_MS, type Holder, openCrowd, type Turn } from "./fairness-crowd.ts";
import { checkLeft, utilisation } from "./fairness-use.ts";
import { addSharedPool, emptyTables, PROJECT } from "./lease-rows.ts";

export interface FairnessSizes {
  readonly rounds: number;
  readonly seconds: number;
  readonly minnows: number;
  readonly whaleWaiters: number;
  /** Of the whale that is spread. */
  readonly whaleProjects: number;
}

export const FAIRNESS_SIZES: Readonly<Record<"full" | "quick", FairnessSizes>> = {
  full: { rounds: 1, seconds: 10, minnows: 200, whaleWaiters: 10_000, whaleProjects: 200 },
  quick: { rounds: 1, seconds: 2, minnows: 200, whaleWaiters: 1_000, whaleProjects: 200 },
};

const POOL_SIZE = 100;
const SETTLING_MS = 1_000;
const ALONE = "minnows_alone";
const WHALES = ["minnows_beside_whale", "minnows_beside_spread_whale"] as const;

/** One tenant with very many waiters, and many tenants with one: what the many notice of the one. */
export async function measureFairness(servers: BenchServers, sizes: FairnessSizes): Promise<Findings> {
  const databaseUrl = await servers.database("execution-capacity", "fairness");
  const service = openCapacityService({ databaseUrl, redisUrl: servers.redisUrl });
  const whale = (projects: number) => whaleOf(sizes.whaleWaiters, projects);
  try {
    const measured = await takeTurns(
      [
        minnows(service, ALONE, [], sizes),
        minnows(service, WHALES[0], whale(1), sizes),
        minnows(service, WHALES[1], whale(sizes.whaleProjects), sizes),
      ],
      sizes.rounds,
    );
    return findings(measured);
  } finally {
    await service.close();
  }
}

export function describeFairness({ rounds, seconds, minnows, whaleWaiters, whaleProjects }: FairnessSizes): string {
  return [
    `rounds ${rounds}, each ${seconds} s; one shared pool of ${POOL_SIZE}, each lease held ${HOLD_MS} ms`,
    `${minnows} tenants with one waiter each, who ask again when they are done`,
    `a whale's ${whaleWaiters} waiters, in one project and in ${whaleProjects}; the worse of the two counts`,
    "a wait ends when the holder hears of its grant",
  ].join("; ");
}

function findings(measured: Measured): Findings {
  const worse = (figures: readonly Spread[], isWorse: (a: Spread, b: Spread) => boolean) =>
    figures.reduce((worst, figure) => (isWorse(figure, worst) ? figure : worst));
  return {
    measured,
    headlines: {
      s3_utilisation: {
        meaning: "share of a wanted pool's slots that are leased, from grant to end, beside the worse whale; 1 is all",
        spread: worse(
          WHALES.map((whale) => figureOf(measured, "utilisation", whale)),
          (a, b) => a.median < b.median,
        ),
      },
    },
    ratios: {
      s3_fairness: {
        meaning: "a minnow's p99 wait beside the worse whale ÷ without one; near 1 is fair",
        spread: worse(
          WHALES.map((whale) => ratio(measured, "wait_p99_ms", whale, ALONE)),
          (a, b) => a.median > b.median,
        ),
      },
    },
  };
}

function whaleOf(waiters: number, projects: number): Holder[] {
  return Array.from({ length: waiters }, (_, place) => ({
    tenantId: "whale",
    projectId: `project-${place % projects}`,
  }));
}

function minnows(service: CapacityService, name: string, whale: readonly Holder[], sizes: FairnessSizes): Contestant {
  const holders = Array.from({ length: sizes.minnows }, (_, place) => ({
    tenantId: `minnow-${place}`,
    projectId: PROJECT,
  }));
  return { name, round: () => swim(service, whale, holders, sizes.seconds * 1_000) };
}

async function swim(
  service: CapacityService,
  whale: readonly Holder[],
  holders: readonly Holder[],
  ms: number,
): Promise<Round> {
  const { aside: pool } = service;
  const poolId = `fairness-${uuidv7()}`;
  await emptyTables(pool);
  await addSharedPool(pool, poolId, POOL_SIZE);
  const [beside, crowd] = [openCrowd(service, poolId), openCrowd(service, poolId)];
  await beside.join(whale);
  await crowd.join(holders);
  await wait(SETTLING_MS);

  const [from, fromDatabase] = [performance.now(), await databaseNow(pool)];
  await wait(ms);
  const [to, toDatabase] = [performance.now(), await databaseNow(pool)];
  await Promise.all([crowd.leave(), beside.leave()]);

  const waits = waitsWithin(crowd.turns, from, to);
  const granted = [...crowd.turns, ...beside.turns].filter((turn) => isWithin(turn.granted, from, to)).length;
  return {
    figures: {
      wait_p50_ms: quantile(waits, 0.5),
      wait_p99_ms: quantile(waits, 0.99),
      granted_per_second: granted / ((to - from) / 1_000),
      utilisation: await utilisation(service, { poolId, size: POOL_SIZE, from: fromDatabase, to: toDatabase }),
    },
    check: () => checkLeft(service, POOL_SIZE),
  };
}

/** Of those who were granted meanwhile; who waits still at the end counts with what he has waited by then. */
function waitsWithin(turns: readonly Turn[], from: number, to: number): number[] {
  return turns
    .filter(({ asked, granted = Infinity }) => asked < to && granted >= from)
    .map(({ asked, granted = Infinity }) => Math.min(granted, to) - asked);
}

function isWithin(instant: number | undefined, from: number, to: number): boolean {
  return instant !== undefined && instant >= from && instant < to;
}
