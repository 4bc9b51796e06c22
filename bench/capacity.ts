import type { BenchOptions } from "./benchmark.ts";
import { withCapacityServers } from "./capacity/capacity-servers.ts";
import { describeFairness, FAIRNESS_SIZES, type FairnessSizes, measureFairness } from "./capacity/fairness.ts";
import { GROWTH_SIZES, type GrowthSizes, measureGrowth } from "./capacity/growth.ts";
import { describeHeartbeat, HEARTBEAT_SIZES, type HeartbeatSizes, measureHeartbeat } from "./capacity/heartbeat.ts";
import { HOT_TENANT_SIZES, type HotTenantSizes, measureHotTenant } from "./capacity/hot-tenant.ts";
import { describeMemory, measureMemory, MEMORY_SIZES, type MemorySizes } from "./capacity/memory.ts";
import { describeStorm, measureStorm, STORM_SIZES, type StormSizes } from "./capacity/storm.ts";
import { describeMachine, joinedFindings, type Results } from "./report.ts";

const FULL = sizesOf("full");
const QUICK = sizesOf("quick");

/**
 * Leases of ExecutionCapacityService: how fast one pool's come and go, beside what somebody would write or take instead;
 * what many that end at once do; whether a crowd keeps others from their turn; what a renewal costs; what lies in
 * memory. All callers and the service share one process, and the servers share its CPUs.
 */
export async function benchCapacity({ quick, log }: BenchOptions): Promise<Results> {
  const sizes = quick ? QUICK : FULL;
  return withCapacityServers(log, async (servers) => {
    const machine = describeMachine(servers.versions);
    log(`hot tenant, rounds: ${sizes.hotTenant.rounds}`);
    const { conditions: contestants, ...hotTenant } = await measureHotTenant(servers, sizes.hotTenant);
    log(`growth, rounds: ${sizes.growth.rounds}`);
    const growth = await measureGrowth(servers, sizes.growth);
    log(`storm, rounds: ${sizes.storm.rounds}`);
    const storm = await measureStorm(servers, sizes.storm);
    log(`fairness, rounds: ${sizes.fairness.rounds}`);
    const fairness = await measureFairness(servers, sizes.fairness);
    log(`heartbeat, rounds: ${sizes.heartbeat.rounds}`);
    const heartbeat = await measureHeartbeat(servers, sizes.heartbeat);
    log(`memory, rounds: ${sizes.memory.rounds}`);
    const memory = await measureMemory(servers, sizes.memory);
    const conditions = { ...contestants, ...conditionsOf(sizes) };
    return { quick, machine, conditions, ...joinedFindings(hotTenant, growth, storm, fairness, heartbeat, memory) };
  });
}

function sizesOf(size: "full" | "quick"): Sizes {
  return {
    hotTenant: HOT_TENANT_SIZES[size],
    growth: GROWTH_SIZES[size],
    storm: STORM_SIZES[size],
    fairness: FAIRNESS_SIZES[size],
    heartbeat: HEARTBEAT_SIZES[size],
    memory: MEMORY_SIZES[size],
  };
}

function conditionsOf({ growth, storm, fairness, heartbeat, memory }: Sizes): Results["conditions"] {
  return {
    durability:
      "PostgreSQL, etcd and the semaphores' Redis flush what they acknowledge; the queues' Redis keeps nothing",
    growth: `rounds ${growth.rounds} of ${growth.seconds} s, each after a checkpoint; ended leases ${growth.endedLeases.join(", ")}`,
    storm: describeStorm(storm),
    fairness: describeFairness(fairness),
    heartbeat: describeHeartbeat(heartbeat),
    memory: describeMemory(memory),
  };
}

interface Sizes {
  readonly hotTenant: HotTenantSizes;
  readonly growth: GrowthSizes;
  readonly storm: StormSizes;
  readonly fairness: FairnessSizes;
  readonly heartbeat: HeartbeatSizes;
  readonly memory: MemorySizes;
}
