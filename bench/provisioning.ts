import type { BenchOptions } from "./benchmark.ts";
import { BIG_PLAN_SIZES, type BigPlanSizes, describeBigPlan, measureBigPlan } from "./provisioning/big-plan.ts";
import { describeHistory, HISTORY_SIZES, type HistorySizes, measureHistory } from "./provisioning/history.ts";
import { describeOverhead, measureOverhead, OVERHEAD_SIZES, type OverheadSizes } from "./provisioning/overhead.ts";
import { type ProvisioningServers, withProvisioningServers } from "./provisioning/provisioning-servers.ts";
import { openProvisioningService } from "./provisioning/provisioning-service.ts";
import {
  describeSaturation,
  measureSaturation,
  SATURATION_SIZES,
  type SaturationSizes,
} from "./provisioning/saturation.ts";
import { describeStates, measureStates, STATE_SIZES, type StateSizes } from "./provisioning/state-growth.ts";
import { describeMachine, type Findings, joinedFindings, type Results } from "./report.ts";

const FULL = sizesOf("full");
const QUICK = sizesOf("quick");

/**
 * Runs of IaCProvisioningService, a process with its own database and queues, beside the bare engine: what one costs,
 * how many are done at once, what it costs that their states are kept, what a very large plan takes, and whether a long
 * history slows anything down. Servers, service, engine and callers share the CPUs.
 */
export async function benchProvisioning({ quick, log }: BenchOptions): Promise<Results> {
  const sizes = quick ? QUICK : FULL;
  return withProvisioningServers(async (servers) => {
    const machine = describeMachine(servers.versions);
    const besideEngine = await measureBesideEngine(servers, sizes, log);
    log(`big plan, rounds: ${sizes.bigPlan.rounds}`);
    const bigPlan = await measureBigPlan(servers, sizes.bigPlan);
    log(`history, rounds: ${sizes.history.rounds}`);
    const history = await measureHistory(servers, sizes.history);
    const conditions = { engine: servers.engine.label, ...conditionsOf(sizes) };
    return { quick, machine, conditions, ...joinedFindings(besideEngine, bigPlan, history) };
  });
}

async function measureBesideEngine(
  servers: ProvisioningServers,
  sizes: Sizes,
  log: BenchOptions["log"],
): Promise<Findings> {
  const { engine } = servers;
  const service = await openProvisioningService(servers, "beside_engine");
  try {
    log(`overhead, rounds: ${sizes.overhead.rounds}`);
    const overhead = await measureOverhead(engine, service, sizes.overhead);
    log(`saturation, rounds: ${sizes.saturation.rounds}`);
    const saturation = await measureSaturation(engine, service, sizes.saturation);
    log(`states, rounds: ${sizes.states.rounds}`);
    const states = await measureStates(engine, service, sizes.states);
    return joinedFindings(overhead, saturation, states);
  } finally {
    await service.close();
  }
}

function sizesOf(size: "full" | "quick"): Sizes {
  return {
    overhead: OVERHEAD_SIZES[size],
    saturation: SATURATION_SIZES[size],
    states: STATE_SIZES[size],
    bigPlan: BIG_PLAN_SIZES[size],
    history: HISTORY_SIZES[size],
  };
}

function conditionsOf({ overhead, saturation, states, bigPlan, history }: Sizes): Results["conditions"] {
  return {
    durability: "PostgreSQL flushes every commit; the queues' Redis keeps nothing",
    overhead: describeOverhead(overhead),
    saturation: describeSaturation(saturation),
    states: describeStates(states),
    big_plan: describeBigPlan(bigPlan),
    history: describeHistory(history),
  };
}

interface Sizes {
  readonly overhead: OverheadSizes;
  readonly saturation: SaturationSizes;
  readonly states: StateSizes;
  readonly bigPlan: BigPlanSizes;
  readonly history: HistorySizes;
}
