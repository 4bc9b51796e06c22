import { readFile } from "node:fs/promises";
import { eachOf, numbers } from "../capacity/each-of.ts";
import type { Findings } from "../report.ts";
import { type Contestant, ratio, type Round, takeTurns } from "../rounds.ts";
import type { BareEngine } from "./bare-engine.ts";
import { THREE_RESOURCES } from "./bench-programs.ts";
import { type AppliedRun, declareInNewEnvironment, runToApplied } from "./bench-runs.ts";
import { idsOf, RESOURCES } from "./overhead.ts";
import { CONCURRENCY, type ProvisioningService } from "./provisioning-service.ts";
import { checkRecorded } from "./recorded-state.ts";
import { checkApplied } from "./run-census.ts";

export interface SaturationSizes {
  readonly rounds: number;
  /** In each round, all asked for at once, each in an environment of its own. */
  readonly runs: number;
}

export const SATURATION_SIZES: Readonly<Record<"full" | "quick", SaturationSizes>> = {
  full: { rounds: 3, runs: 40 },
  quick: { rounds: 1, runs: 8 },
};

const ENGINE = "bare_engine";
const OURS = "runtime_cloud";

/** More runs than executors: how many are done a second. */
export async function measureSaturation(
  engine: BareEngine,
  service: ProvisioningService,
  { rounds, runs }: SaturationSizes,
): Promise<Findings> {
  const contestants: Contestant[] = [
    { name: ENGINE, round: () => bareRuns(engine, runs) },
    { name: OURS, round: () => serviceRuns(service, runs) },
  ];
  const measured = await takeTurns(contestants, rounds);
  return {
    measured,
    headlines: {},
    ratios: {
      throughput_vs_engine: {
        meaning: `runs of ${RESOURCES} resources per second, ${CONCURRENCY} at once, ÷ the bare engine's; more is better`,
        spread: ratio(measured, "runs_per_second", OURS, ENGINE),
      },
    },
  };
}

export function describeSaturation({ rounds, runs }: SaturationSizes): string {
  return [
    `rounds ${rounds} of ${runs} runs, each in a new environment, ${CONCURRENCY} at once`,
    "ours are all asked for at once, and done when a subscriber has all of their ProvisioningApplied",
  ].join("; ");
}

async function bareRuns(engine: BareEngine, runs: number): Promise<Round> {
  const states: string[] = [];
  const started = performance.now();
  await eachOf(numbers(runs), CONCURRENCY, async (run) => {
    const workspace = await engine.open({ programVersion: THREE_RESOURCES, parameters: { name: `run-${run}` } });
    for (const verb of ["init", "plan", "show", "apply"] as const) await workspace.run(verb);
    states.push(await readFile(workspace.stateFile, "utf8"));
    await workspace.close();
  });
  return {
    figures: { runs_per_second: perSecond(runs, performance.now() - started) },
    check: async () => states.forEach((state) => checkRecorded(state, RESOURCES)),
  };
}

async function serviceRuns(service: ProvisioningService, runs: number): Promise<Round> {
  const specifications: string[] = [];
  for (const run of numbers(runs)) {
    specifications.push(await declareInNewEnvironment(service, THREE_RESOURCES, { name: `run-${run}` }));
  }
  const done: AppliedRun[] = [];
  const started = performance.now();
  await eachOf(specifications, runs, async (specificationId) => {
    done.push(await runToApplied(service, specificationId));
  });
  const ended = Math.max(...done.map(({ heardAt }) => heardAt));
  return {
    figures: { runs_per_second: perSecond(runs, ended - started) },
    check: () => checkApplied(service.aside, idsOf(done), RESOURCES),
  };
}

function perSecond(count: number, ms: number): number {
  return count / (ms / 1_000);
}
