import { setTimeout as wait } from "node:timers/promises";
import type { Findings } from "../report.ts";
import { type Measured, ratio, type Round, takeTurns } from "../rounds.ts";
import { startAgents } from "./agents.ts";
import { checkWell } from "./environment-census.ts";
import type { EnvironmentServers } from "./environment-servers.ts";
import { addObservedEnvironments, type ObservedEnvironments } from "./observed-environments.ts";
import { type ObservingService, openObservingService } from "./observing-service.ts";
import { checkUnchanged, workDuring } from "./service-figures.ts";

export interface GrowthSizes {
  readonly rounds: number;
  readonly seconds: number;
  /** Fewest first. */
  readonly environments: readonly [few: number, many: number];
}

export const GROWTH_SIZES: Readonly<Record<"full" | "quick", GrowthSizes>> = {
  full: { rounds: 3, seconds: 20, environments: [100, 10_000] },
  quick: { rounds: 1, seconds: 3, environments: [100, 10_000] },
};

/** Both services have as much to do: the more environments, the longer the interval. */
const LOOKS_PER_SECOND = 10;
const MS_PER_SECOND = 1_000;
const THOUSAND = 1_000;

/** Two services that look equally often, one at few environments and one at many: what a look costs them. */
export async function measureGrowth(servers: EnvironmentServers, sizes: GrowthSizes): Promise<Findings> {
  const observed = await allOpened(sizes.environments.map((count) => openObserved(servers, count)));
  try {
    const contestants = observed.map((each) => ({ name: each.name, round: () => lookFor(sizes.seconds, each) }));
    await takeTurns(contestants, 1);
    return findings(await takeTurns(contestants, sizes.rounds), sizes);
  } finally {
    await Promise.all(observed.map((each) => each.close()));
  }
}

export function describeGrowth({ rounds, seconds, environments }: GrowthSizes): string {
  return [
    `rounds ${rounds} of ${seconds} s after one that doesn't count, at ${environments.join(" and at ")} environments, each a service with a database of its own`,
    `each looks at ${LOOKS_PER_SECOND} environments a second all the time, every ${environments.map(secondsFor).join(" s and every ")} s, and as many agents report`,
  ].join("; ");
}

function findings(measured: Measured, { environments: [few, many] }: GrowthSizes): Findings {
  return {
    measured,
    headlines: {},
    ratios: {
      [`growth_${shortly(many)}_vs_${shortly(few)}`]: {
        meaning: `CPU of the service's process for an environment's look and its agent's report with ${many} environments ÷ with ${few}, as many looks a second; less is better`,
        spread: ratio(measured, "cpu_ms_per_look", nameOf(many), nameOf(few)),
      },
    },
  };
}

async function openObserved(servers: EnvironmentServers, count: number): Promise<Observed> {
  const name = nameOf(count);
  const service = await openObservingService(servers, name);
  try {
    const size = { count, observeSeconds: secondsFor(count) };
    const environments = await addObservedEnvironments(servers, service, size);
    const agents = startAgents(service, environments);
    return { name, service, environments, close: () => agents.stop().finally(() => service.close()) };
  } catch (error) {
    await service.close();
    throw error;
  }
}

/** They start side by side. When one can't, none is left behind. */
async function allOpened(opening: readonly Promise<Observed>[]): Promise<Observed[]> {
  const settled = await Promise.allSettled(opening);
  const opened = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = settled.find((one) => one.status === "rejected");
  if (!failed) return opened;
  await Promise.all(opened.map((each) => each.close()));
  throw failed.reason;
}

async function lookFor(seconds: number, { service, environments }: Observed): Promise<Round> {
  const work = await workDuring(service.adminUrl, () => wait(seconds * MS_PER_SECOND));
  const looks = work.unchanged.engine;
  return {
    figures: {
      cpu_ms_per_look: (work.cpuSeconds * MS_PER_SECOND) / looks,
      looks_per_second: looks / work.seconds,
    },
    async check() {
      checkUnchanged(work);
      await checkWell(service.aside, environments);
    },
  };
}

function secondsFor(environments: number): number {
  return environments / LOOKS_PER_SECOND;
}

function nameOf(environments: number): string {
  return `environments_${shortly(environments)}`;
}

/** `100`, `10k` */
function shortly(count: number): string {
  return count < THOUSAND ? String(count) : `${count / THOUSAND}k`;
}

interface Observed {
  readonly name: string;
  readonly service: ObservingService;
  readonly environments: ObservedEnvironments;
  close(): Promise<void>;
}
