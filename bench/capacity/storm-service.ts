import type { Contestant, Round } from "../rounds.ts";
import { quantile } from "../spread.ts";
import type { CapacityService } from "./capacity-service.ts";
import { reach } from "./instants.ts";
import { labelOf } from "./lease-rows.ts";
import type { StormSizes } from "./storm.ts";
import { startBystander } from "./storm-bystander.ts";
import { allEnded, checkExpired, prepareStorm } from "./storm-leases.ts";

const SECOND_MS = 1_000;
/** Until the bystander's statements are planned. */
const SETTLING_MS = 1_000;

/** Ours, as it is deployed: one wake-up for the second, the sweep, and a desk that serves others meanwhile. */
export function stormOfService(service: CapacityService, { leases, tenants, quietSeconds }: StormSizes): Contestant {
  return {
    name: "runtime_cloud",
    round: () => play(service, leases.runtime_cloud, tenants, quietSeconds * SECOND_MS),
  };
}

async function play(service: CapacityService, count: number, tenants: number, quietMs: number): Promise<Round> {
  const { aside: pool, context } = service;
  const storm = await prepareStorm(pool, { count, tenants, quietMs, over: (early) => allEnded(pool, early) });
  // As whoever granted them did.
  await context.arm("lease-expiry", storm.due, labelOf(storm.poolId));
  await reach(new Date(storm.due.getTime() - quietMs));
  const settled = performance.now() + SETTLING_MS;
  const bystander = startBystander(service.desk);
  const due = await reach(storm.due);
  const ended = await allEnded(pool, storm);
  const acquisitions = await bystander.stop();

  const quiet = acquisitions.filter(({ at }) => at >= settled && at < due).map(({ ms }) => ms);
  const stormy = acquisitions.filter(({ at }) => at >= due && at <= ended).map(({ ms }) => ms);
  const [quietP99, stormyP99] = [quantile(quiet, 0.99), quantile(stormy, 0.99)];
  return {
    figures: {
      expired_per_second: count / ((ended - due) / SECOND_MS),
      bystander_quiet_p99_ms: quietP99,
      bystander_storm_p99_ms: stormyP99,
      bystander_storm_vs_quiet: stormyP99 / quietP99,
    },
    check: () => checkExpired(service, storm),
  };
}
