import { readFile } from "node:fs/promises";
import type { Findings } from "../report.ts";
import { type Contestant, figureOf, type Measured, ratio, type Round, takeTurns } from "../rounds.ts";
import { quantile } from "../spread.ts";
import type { BareEngine, Verb } from "./bare-engine.ts";
import { THREE_RESOURCES } from "./bench-programs.ts";
import { type AppliedRun, declareInNewEnvironment, runToApplied } from "./bench-runs.ts";
import type { ProvisioningService } from "./provisioning-service.ts";
import { checkRecorded } from "./recorded-state.ts";
import { checkApplied } from "./run-census.ts";
import { phasesOf, type RunPhases } from "./run-phases.ts";

export interface OverheadSizes {
  readonly rounds: number;
  /** One after the other, in each round. */
  readonly runs: number;
}

export const OVERHEAD_SIZES: Readonly<Record<"full" | "quick", OverheadSizes>> = {
  full: { rounds: 5, runs: 10 },
  quick: { rounds: 2, runs: 2 },
};

export const RESOURCES = 3;
const WARMING_RUNS = 1;
const ENGINE = "bare_engine";
const OURS = "runtime_cloud";
const VERBS: readonly Verb[] = ["init", "plan", "show", "apply"];

/** One run after the other: what planning, recording, applying and telling it costs above the engine itself. */
export async function measureOverhead(
  engine: BareEngine,
  service: ProvisioningService,
  { rounds, runs }: OverheadSizes,
): Promise<Findings> {
  const contestants = (each: number): Contestant[] => [
    { name: ENGINE, round: () => bareRuns(engine, each) },
    { name: OURS, round: () => serviceRuns(service, each) },
  ];
  await takeTurns(contestants(WARMING_RUNS), 1);
  return findings(await takeTurns(contestants(runs), rounds));
}

export function describeOverhead({ rounds, runs }: OverheadSizes): string {
  return [
    `rounds ${rounds} of ${runs} runs of ${RESOURCES} new resources, one after the other, after one that doesn't count`,
    "ours from PlanProvisioning's call to a subscriber that has ProvisioningApplied",
    "the engine: init, plan, show and apply in a new directory with its local backend, its output thrown away",
    "of ours, the states' times are the database's, and the rest is the call and the telling",
  ].join("; ");
}

function findings(measured: Measured): Findings {
  return {
    measured,
    headlines: {
      run_ms: { meaning: "median time of a run, in ms; less is better", spread: figureOf(measured, "run_ms", OURS) },
    },
    ratios: {
      run_vs_engine: {
        meaning: `a run of ${RESOURCES} resources, from the call to ProvisioningApplied, ÷ the bare engine's init, plan, show and apply; less is better`,
        spread: ratio(measured, "run_ms", OURS, ENGINE),
      },
    },
  };
}

async function bareRuns(engine: BareEngine, runs: number): Promise<Round> {
  const times: Record<Verb, number>[] = [];
  const states: string[] = [];
  for (let run = 0; run < runs; run += 1) {
    const workspace = await engine.open({ programVersion: THREE_RESOURCES, parameters: { name: `run-${run}` } });
    const took = { init: 0, plan: 0, show: 0, apply: 0 };
    for (const verb of VERBS) took[verb] = await workspace.run(verb);
    times.push(took);
    states.push(await readFile(workspace.stateFile, "utf8"));
    await workspace.close();
  }
  return {
    figures: {
      run_ms: median(times, ({ init, plan, show, apply }) => init + plan + show + apply),
      ...Object.fromEntries(VERBS.map((verb) => [`${verb}_ms`, median(times, (took) => took[verb])])),
    },
    check: async () => states.forEach((state) => checkRecorded(state, RESOURCES)),
  };
}

async function serviceRuns(service: ProvisioningService, runs: number): Promise<Round> {
  const done: (AppliedRun & RunPhases)[] = [];
  for (let run = 0; run < runs; run += 1) {
    const specificationId = await declareInNewEnvironment(service, THREE_RESOURCES, { name: `run-${run}` });
    const applied = await runToApplied(service, specificationId);
    done.push({ ...applied, ...(await phasesOf(service.aside, service.tenantId, applied.runId)) });
  }
  return {
    figures: {
      run_ms: median(done, ({ askedAt, heardAt }) => heardAt - askedAt),
      pickup_ms: median(done, ({ pickup }) => pickup),
      planning_ms: median(done, ({ planning }) => planning),
      handover_ms: median(done, ({ handover }) => handover),
      applying_ms: median(done, ({ applying }) => applying),
      call_and_telling_ms: median(done, callAndTelling),
    },
    check: () => checkApplied(service.aside, idsOf(done), RESOURCES),
  };
}

export function idsOf(runs: readonly AppliedRun[]): string[] {
  return runs.map(({ runId }) => runId);
}

function callAndTelling({ askedAt, heardAt, pickup, planning, handover, applying }: AppliedRun & RunPhases): number {
  return heardAt - askedAt - (pickup + planning + handover + applying);
}

function median<Item>(items: readonly Item[], figure: (item: Item) => number): number {
  return quantile(items.map(figure), 0.5);
}
