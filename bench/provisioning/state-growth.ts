import type { Finding, Findings } from "../report.ts";
import { figureOf, joined, type Measured, ratio, takeTurns } from "../rounds.ts";
import { spreadOf } from "../spread.ts";
import type { BareEngine } from "./bare-engine.ts";
import type { ProvisioningService } from "./provisioning-service.ts";
import { backendApply, localApply, runApply } from "./state-apply.ts";

export interface StateSizes {
  readonly rounds: number;
  /** Also with the state in a file. */
  readonly resources: number;
  /** Without one: a file is rewritten with each resource, so that takes minutes. Once; left out when absent. */
  readonly many?: number;
}

export const STATE_SIZES: Readonly<Record<"full" | "quick", StateSizes>> = {
  full: { rounds: 2, resources: 1_000, many: 5_000 },
  quick: { rounds: 1, resources: 100 },
};

const FIGURE = "apply_seconds";
const THOUSAND = 1_000;

/** What it costs that an apply's state is kept, versioned and encrypted, by the service. */
export async function measureStates(
  engine: BareEngine,
  service: ProvisioningService,
  { rounds, resources, many }: StateSizes,
): Promise<Findings> {
  const contestants = [
    localApply(engine, resources),
    backendApply(engine, service, resources),
    runApply(service, resources),
  ];
  const few = findings(await takeTurns(contestants, rounds), resources);
  if (many === undefined) return few;
  const more = await takeTurns([backendApply(engine, service, many), runApply(service, many)], 1);
  const measured = joined(few.measured, more);
  return { ...few, measured, headlines: growth(measured, resources, many) };
}

export function describeStates({ rounds, resources, many }: StateSizes): string {
  return [
    `rounds ${rounds} of an apply of ${resources} new resources${many === undefined ? "" : `, and one of ${many}`}`,
    "local_ and state_backend_ are the bare engine's apply, planned before; run_ is a run's time in APPLYING, with its receipt, log and outputs",
  ].join("; ");
}

function findings(measured: Measured, resources: number): Findings {
  const local = `local_${resources}`;
  return {
    measured,
    headlines: {},
    ratios: {
      [`state_backend_${shortly(resources)}_vs_local`]: {
        meaning: `the bare engine's apply of ${resources} resources with our state backend ÷ with a state file; less is better`,
        spread: ratio(measured, FIGURE, `state_backend_${resources}`, local),
      },
      [`run_apply_${shortly(resources)}_vs_local`]: {
        meaning: `a run's apply of ${resources} resources ÷ the bare engine's with a state file; less is better`,
        spread: ratio(measured, FIGURE, `run_${resources}`, local),
      },
    },
  };
}

function growth(measured: Measured, resources: number, many: number): Readonly<Record<string, Finding>> {
  const grown = (contestant: string, whose: string): Finding => {
    const few = figureOf(measured, FIGURE, `${contestant}_${resources}`).median;
    const more = figureOf(measured, FIGURE, `${contestant}_${many}`).median;
    return {
      meaning: `${whose} time for ${many} resources ÷ for ${resources}; ${many / resources} is linear, and the engine by itself isn't`,
      spread: spreadOf([more / few]),
    };
  };
  return {
    [`state_backend_growth_${shortly(many)}_vs_${shortly(resources)}`]: grown("state_backend", "the bare engine's"),
    [`run_apply_growth_${shortly(many)}_vs_${shortly(resources)}`]: grown("run", "a run's apply's"),
  };
}

/** `200`, `1k` */
function shortly(count: number): string {
  return count < THOUSAND ? String(count) : `${count / THOUSAND}k`;
}
