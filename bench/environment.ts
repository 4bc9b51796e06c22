import type { BenchOptions } from "./benchmark.ts";
import { describeDiff, DIFF_SIZES, type DiffSizes, measureDiff } from "./environment/diff.ts";
import { describeDrift, DRIFT_SIZES, type DriftSizes, measureDrift } from "./environment/drift.ts";
import { type EnvironmentServers, withEnvironmentServers } from "./environment/environment-servers.ts";
import { describeGrowth, GROWTH_SIZES, type GrowthSizes, measureGrowth } from "./environment/growth.ts";
import { openObservingService } from "./environment/observing-service.ts";
import { describeSchedule, measureSchedule, SCHEDULE_SIZES, type ScheduleSizes } from "./environment/schedule.ts";
import { describeTargets, missedTargets } from "./environment/targets.ts";
import { describeMachine, type Findings, joinedFindings, type Results } from "./report.ts";

const FULL = sizesOf("full");
const QUICK = sizesOf("quick");

/**
 * Environments as RuntimeEnvironmentService sees them, a process with its own database and queues: how soon drift on
 * disk is heard of, how late and how dear thousands of scheduled looks are, beside a plain poller, and what it takes to
 * compare a very large environment with how it was. Servers, services, observed components and callers share the CPUs.
 */
export async function benchEnvironment({ quick, log }: BenchOptions): Promise<Results> {
  const sizes = quick ? QUICK : FULL;
  return withEnvironmentServers(async (servers) => {
    const machine = describeMachine(servers.versions);
    log(`diff, rounds: ${sizes.diff.rounds}`);
    const diff = await measureDiff(servers, sizes.diff);
    const observing = await measureObserving(servers, sizes, log);
    log(`growth, rounds: ${sizes.growth.rounds}`);
    const growth = await measureGrowth(servers, sizes.growth);
    const findings = joinedFindings(observing, growth, diff);
    for (const missed of missedTargets(findings)) log(missed);
    return { quick, machine, conditions: conditionsOf(sizes), ...findings };
  });
}

async function measureObserving(
  servers: EnvironmentServers,
  { drift: drifting, schedule: scheduled }: Sizes,
  log: BenchOptions["log"],
): Promise<Findings> {
  const service = await openObservingService(servers, "running_state", servers.provisioning.queuePrefix);
  try {
    log(`drift, rounds: ${drifting.rounds}`);
    const drift = await measureDrift(servers, service, drifting);
    log(`schedule, rounds: ${scheduled.rounds}`);
    const schedule = await measureSchedule(servers, service, scheduled);
    return joinedFindings(drift, schedule);
  } finally {
    await service.close();
  }
}

function sizesOf(size: "full" | "quick"): Sizes {
  return {
    drift: DRIFT_SIZES[size],
    schedule: SCHEDULE_SIZES[size],
    growth: GROWTH_SIZES[size],
    diff: DIFF_SIZES[size],
  };
}

function conditionsOf({ drift, schedule, growth, diff }: Sizes): Results["conditions"] {
  return {
    durability: "PostgreSQL flushes every commit; the queues' Redis keeps nothing",
    targets: describeTargets(),
    drift: describeDrift(drift),
    schedule: describeSchedule(schedule),
    growth: describeGrowth(growth),
    diff: describeDiff(diff),
  };
}

interface Sizes {
  readonly drift: DriftSizes;
  readonly schedule: ScheduleSizes;
  readonly growth: GrowthSizes;
  readonly diff: DiffSizes;
}
