import { RunMode, RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { until } from "@runtime-cloud/local-servers/until";
import type { Findings } from "../report.ts";
import { figureOf, type Measured, type Round, takeTurns } from "../rounds.ts";
import { spreadOf } from "../spread.ts";
import { MANY_RESOURCES } from "./bench-programs.ts";
import { declareInNewEnvironment, planRun } from "./bench-runs.ts";
import { peakMb, resetPeak, tellsPeaks } from "./process-memory.ts";
import type { ProvisioningServers } from "./provisioning-servers.ts";
import { openProvisioningService, type ProvisioningService } from "./provisioning-service.ts";

export interface BigPlanSizes {
  readonly rounds: number;
  readonly resources: number;
}

export const BIG_PLAN_SIZES: Readonly<Record<"full" | "quick", BigPlanSizes>> = {
  full: { rounds: 2, resources: 15_000 },
  quick: { rounds: 1, resources: 1_000 },
};

/** What the service shall stay below while it reads such a plan. */
const BOUND_MB = 400;
const TIMEOUT_MS = 300_000;
const TOKEN = "a-token-that-nobody-may-see";
const OURS = "runtime_cloud";

/** A plan with very many resources, read, redacted and stored by a service that has done nothing else yet. */
export async function measureBigPlan(servers: ProvisioningServers, sizes: BigPlanSizes): Promise<Findings> {
  if (!tellsPeaks) return { measured: {}, headlines: {}, ratios: {} };
  const round = async () => {
    const service = await openProvisioningService(servers, "big_plan");
    try {
      const { figures, check } = await plan(service, sizes.resources);
      // Its database is still open here.
      await check();
      return { figures, check: async () => undefined };
    } finally {
      await service.close();
    }
  };
  return findings(await takeTurns([{ name: OURS, round }], sizes.rounds), sizes);
}

export function describeBigPlan({ rounds, resources }: BigPlanSizes): string {
  return `rounds ${rounds} of a plan of ${resources} new resources with a sensitive value each; the service's process alone, begun anew; only on Linux`;
}

function findings(measured: Measured, { resources }: BigPlanSizes): Findings {
  const size = `${resources / 1_000}k`;
  const peak = figureOf(measured, "plan_peak_mb", OURS);
  return {
    measured,
    headlines: {
      [`plan_${size}_peak_mb`]: {
        meaning: `most resident memory of the service's process while it plans ${resources} resources, in MiB; less is better`,
        spread: peak,
      },
    },
    ratios: {
      [`plan_${size}_memory_vs_${BOUND_MB}mb`]: {
        meaning: `that peak ÷ ${BOUND_MB} MiB; below 1 is within its bound`,
        spread: spreadOf([peak.min, peak.median, peak.max].map((mb) => mb / BOUND_MB)),
      },
    },
  };
}

async function plan(service: ProvisioningService, resources: number): Promise<Round> {
  const { client, pid, aside } = service;
  const parameters = { size: resources, token: TOKEN };
  const specificationId = await declareInNewEnvironment(service, MANY_RESOURCES, parameters);
  const beforeMb = await resetPeak(pid);
  const started = performance.now();
  const runId = await planRun(service, specificationId, RunMode.PLAN_ONLY);
  await until(`a plan of ${resources} resources`, TIMEOUT_MS, async () => {
    const { run } = await client.getProvisioningRun({ provisioningRunId: runId });
    if (run?.state === RunState.FAILED) throw new Error(`the plan failed: ${String(run.reason)}`);
    return run?.state === RunState.PLANNED ? run : undefined;
  });
  const seconds = (performance.now() - started) / 1_000;
  const peak = await peakMb(pid);
  return {
    figures: { plan_seconds: seconds, before_mb: beforeMb, plan_peak_mb: peak },
    async check() {
      const { rows } = await aside.query<{ stored: number; told: number }>(
        `SELECT count(*)::int AS stored, (count(*) FILTER (WHERE planned_change::text LIKE '%' || $2 || '%'))::int AS told
         FROM planned_change WHERE run_id = $1`,
        [runId, TOKEN],
      );
      const [found] = rows;
      if (found?.stored === resources && found.told === 0) return;
      throw new Error(
        `of ${resources} changes the database has ${JSON.stringify(found)}, told being those with a secret`,
      );
    },
  };
}
