import { setTimeout as wait } from "node:timers/promises";
import { databaseNow } from "@runtime-cloud/eventing/database-clock";
import type { Findings } from "../report.ts";
import { figureOf, type Measured, ratio, type Round, takeTurns } from "../rounds.ts";
import { quantile } from "../spread.ts";
import { startAgents } from "./agents.ts";
import type { EnvironmentServers } from "./environment-servers.ts";
import { checkWell } from "./environment-census.ts";
import { caughtUp, logLooks, looksDue, reportedSince } from "./look-log.ts";
import { addObservedEnvironments, type ObservedEnvironments } from "./observed-environments.ts";
import type { ObservingService } from "./observing-service.ts";
import { PLAIN_POLLER, withPlainPoller } from "./plain-poller.ts";
import { checkUnchanged, workDuring } from "./service-figures.ts";

export interface ScheduleSizes {
  readonly rounds: number;
  readonly environments: number;
  readonly observeSeconds: number;
}

export const SCHEDULE_SIZES: Readonly<Record<"full" | "quick", ScheduleSizes>> = {
  full: { rounds: 3, environments: 2_000, observeSeconds: 60 },
  quick: { rounds: 1, environments: 60, observeSeconds: 5 },
};

const OURS = "runtime_cloud";
/** The longest interval is a tenth longer than its environment's setting: in so many, each is due. */
const INTERVALS = 1.2;
/** Environments of one sweep of the poller, which is over before it holds up much. */
const SWEPT = 300;
const MS_PER_SECOND = 1_000;
const SECONDS_PER_MINUTE = 60;

/** Environments looked at by their schedule, while agents report on them: how late it is, and what it costs. */
export async function measureSchedule(
  servers: EnvironmentServers,
  service: ObservingService,
  { rounds, environments: count, observeSeconds }: ScheduleSizes,
): Promise<Findings> {
  await logLooks(service.aside);
  const environments = await addObservedEnvironments(servers, service, { count, observeSeconds });
  const agents = startAgents(service, environments);
  const measured = await withPlainPoller(servers, Math.min(count, SWEPT), async (poller) => {
    const contestants = [{ name: OURS, round: () => intervalOf(servers, service, environments) }, poller];
    await takeTurns(contestants, 1);
    return takeTurns(contestants, rounds);
  }).finally(() => agents.stop());
  return findings(measured, count, observeSeconds);
}

export function describeSchedule({ rounds, environments, observeSeconds }: ScheduleSizes): string {
  return [
    `rounds ${rounds} of ${INTERVALS} intervals, after one that doesn't count; ${environments} environments, each looked at every ${observeSeconds} s and reported on by its agent as often`,
    "a look: the engine by gRPC, which has nothing applied, and one component's health and version by HTTP, from an HTTP server in a process of its own; the service looks at 16 side by side",
    "lateness: from the instant that the schedule wanted to when both sights were in the database, noted by triggers there",
    "the service's CPU is that of its whole process: looks, agents' reports, deadlines and metrics",
    "plain_poller: fetch for the same two requests, 16 environments at once and as fast as it goes, an UPDATE each; a sweep is of ${Math.min(environments, SWEPT)}, our schedule goes on beside it, and its next round begins once that has made up for it",
  ].join("; ");
}

function findings(measured: Measured, environments: number, observeSeconds: number): Findings {
  return {
    measured,
    headlines: {
      lateness_p99_ms: {
        meaning: `99th percentile of how late scheduled looks were taken in, ${environments} environments every ${observeSeconds} s, in ms; less is better`,
        spread: figureOf(measured, "lateness_p99_ms", OURS),
      },
      service_cores: {
        meaning: "CPU seconds of the service's process per second meanwhile; less is better",
        spread: figureOf(measured, "service_cores", OURS),
      },
      environments_per_minute_per_core: {
        meaning:
          "environments looked at, and reported on, for each CPU minute of the service's process; more is better",
        spread: figureOf(measured, "environments_per_minute_per_core", OURS),
      },
    },
    ratios: {
      look_vs_plain_poller: {
        meaning:
          "CPU of the service's process for an environment's look and its agent's report ÷ a plain poller's for the same HTTP requests and an UPDATE; less is better",
        spread: ratio(measured, "cpu_ms_per_look", OURS, PLAIN_POLLER),
      },
    },
  };
}

async function intervalOf(
  { endpoints }: EnvironmentServers,
  { adminUrl, aside }: ObservingService,
  environments: ObservedEnvironments,
): Promise<Round> {
  const { ids, observeSeconds } = environments;
  // The poller's turn before this one may have left it behind.
  await caughtUp(aside);
  const requestsBefore = await endpoints.requests();
  const from = await databaseNow(aside);
  const work = await workDuring(adminUrl, () => wait(INTERVALS * observeSeconds * MS_PER_SECOND));
  const to = await databaseNow(aside);
  const looks = await looksDue(aside, from, to);
  const requests = (await endpoints.requests()) - requestsBefore;
  const lateness = looks.map(({ latenessMs }) => latenessMs);
  const { unchanged, cpuSeconds, seconds } = work;
  return {
    figures: {
      lateness_p50_ms: quantile(lateness, 0.5),
      lateness_p99_ms: quantile(lateness, 0.99),
      lateness_max_ms: Math.max(...lateness),
      service_cores: cpuSeconds / seconds,
      looks_per_second: unchanged.engine / seconds,
      cpu_ms_per_look: (cpuSeconds * MS_PER_SECOND) / unchanged.engine,
      environments_per_minute_per_core: (unchanged.engine * SECONDS_PER_MINUTE) / cpuSeconds,
    },
    async check() {
      const seen = new Set(looks.map(({ environmentId }) => environmentId));
      const reported = await reportedSince(aside, from, "push");
      if (seen.size !== ids.length || reported !== ids.length) {
        throw new Error(`of ${ids.length} environments ${seen.size} were looked at and ${reported} reported on`);
      }
      if (requests < 2 * ids.length) throw new Error(`the components were asked ${requests} times`);
      checkUnchanged(work);
      await checkWell(aside, environments);
    },
  };
}
