import { setTimeout as wait } from "node:timers/promises";

import { capacityDifferences } from "@runtime-cloud/execution-capacity/capacity/capacity-differences";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { secondsAfter } from "@runtime-cloud/eventing/database-clock";
import type pg from "pg";
import type { Findings } from "../report.ts";
import { type Contestant, figureOf, type Measured, type Round, takeTurns } from "../rounds.ts";
import type { BenchServers } from "../servers.ts";
import { quantile } from "../spread.ts";
import { type CapacityService, openCapacityService } from "./capacity-service.ts";
import { renewal } from "./desk-operations.ts";
import { costsOf } from "./heartbeat-costs.ts";
import { reach } from "./instants.ts";
import { addLiveLeases, emptyTables, labelOf } from "./lease-rows.ts";
import { steadily } from "./steadily.ts";

export interface HeartbeatSizes {
  readonly rounds: number;
  readonly leases: number;
  /** Each lease is renewed once within them. */
  readonly seconds: number;
}

export const HEARTBEAT_SIZES: Readonly<Record<"full" | "quick", HeartbeatSizes>> = {
  full: { rounds: 1, leases: 20_000, seconds: 20 },
  quick: { rounds: 1, leases: 5_000, seconds: 5 },
};

const TTL_SECONDS = 60;
const TENANTS = 200;
const POOL_SIZE = 100_000;
/** What the rows' making takes at least, so that no lease is due before it is there. */
const ROWS_PER_SECOND = 5_000;
/** Within them the statements are planned; they count for the costs alone. */
const SETTLING_SECONDS = 1;
/** Long enough for some wake-ups. */
const IDLE_SECONDS = 3;
const PASSES_BEFORE = 2;
const PARTS_OF_A_PASS = 20;

/** Live leases whose holders renew them in time: how long a renewal takes, and what it costs. */
export async function measureHeartbeat(servers: BenchServers, sizes: HeartbeatSizes): Promise<Findings> {
  const databaseUrl = await servers.database("execution-capacity", "heartbeat");
  const service = openCapacityService({ databaseUrl, redisUrl: servers.redisUrl });
  try {
    const contestant = {
      name: "runtime_cloud",
      round: () => beat(service, servers.redisUrl, sizes),
    } satisfies Contestant;
    return findings(await takeTurns([contestant], sizes.rounds), sizes);
  } finally {
    await service.close();
  }
}

export function describeHeartbeat({ rounds, leases, seconds }: HeartbeatSizes): string {
  return [
    `rounds ${rounds}; ${leases} live leases of ${TTL_SECONDS} s, ${leases / seconds} renewals/s for ${seconds} s, each lease once`,
    `the first ${SETTLING_SECONDS} s is left out of the latencies`,
    "PostgreSQL's log is all that is written meanwhile, wake-ups and sweeps included, wal_level minimal",
    `Redis's commands are those beyond what ${IDLE_SECONDS} s before, without renewals, come to`,
  ].join("; ");
}

function findings(measured: Measured, { leases, seconds }: HeartbeatSizes): Findings {
  const pace = `at ${leases / seconds} renewals/s; less is better`;
  const ours = (figure: string, meaning: string) => ({ meaning, spread: figureOf(measured, figure, "runtime_cloud") });
  return {
    measured,
    headlines: {
      s4_renewal_p50_ms: ours("renewal_p50_ms", `median time of a renewal ${pace}`),
      s4_renewal_p99_ms: ours("renewal_p99_ms", `time of a renewal that 99 % don't exceed ${pace}`),
      s4_wal_bytes_per_renewal: ours(
        "wal_bytes_per_renewal",
        "bytes of PostgreSQL's log for a renewal; less is better",
      ),
      s4_redis_commands_per_renewal: ours(
        "redis_commands_per_renewal",
        "Redis commands for a renewal, beyond those of wake-ups; 0 is best",
      ),
    },
    ratios: {},
  };
}

async function beat(service: CapacityService, redisUrl: string, { leases, seconds }: HeartbeatSizes): Promise<Round> {
  const { context, desk, aside } = service;
  await emptyTables(aside);
  // As if they had been renewed at this pace for long: some are to be renewed now, and others to be looked after.
  const start = secondsAfter(systemClock.now(), leases / ROWS_PER_SECOND);
  const poolId = `heartbeat-${start.getTime()}`;
  const held = await addLiveLeases(aside, POOL_SIZE, {
    poolId,
    count: leases,
    tenants: TENANTS,
    ttlSeconds: TTL_SECONDS,
    expiries: [secondsAfter(start, TTL_SECONDS - seconds), secondsAfter(start, TTL_SECONDS)],
    dues: [start, secondsAfter(start, TTL_SECONDS - seconds / 2)],
  });
  await wearIn(aside);
  for (let second = 0; second < TTL_SECONDS; second += 1) {
    await context.arm("lease-expiry", secondsAfter(start, second), labelOf(poolId));
  }

  await reach(start);

  const idle = await costsOf(aside, redisUrl, () => wait(IDLE_SECONDS * 1_000));
  const times: number[] = [];
  let perSecond = 0;
  const costs = await costsOf(aside, redisUrl, async () => {
    perSecond = await steadily({ perSecond: leases / seconds, count: leases }, async (place) => {
      const lease = held[place];
      if (!lease) throw new Error("there is no such lease");
      const asked = performance.now();
      const outcome = await desk.submit(renewal(lease, TTL_SECONDS * 1_000));
      times[place] = performance.now() - asked;
      if (outcome.renewal !== "RENEWED") throw new Error(`a live lease's renewal is ${String(outcome.renewal)}`);
    });
  });
  const idleCommands = (idle.redisCommands / idle.seconds) * costs.seconds;
  const settled = times.slice(Math.ceil((SETTLING_SECONDS * leases) / seconds));
  return {
    figures: {
      renewal_p50_ms: quantile(settled, 0.5),
      renewal_p99_ms: quantile(settled, 0.99),
      wal_bytes_per_renewal: costs.walBytes / leases,
      redis_commands_per_renewal: (costs.redisCommands - idleCommands) / leases,
      redis_commands_per_second_idle: idle.redisCommands / idle.seconds,
      // Below the rate that was asked for, the machine was too busy to ask.
      renewals_per_second: perSecond,
    },
    check: () => checkRenewed(service, leases, start),
  };
}

/** Moves the rows as earlier renewals did, part after part, so that their pages have the room that they left. */
async function wearIn(pool: pg.Pool): Promise<void> {
  for (let step = 0; step < PASSES_BEFORE * PARTS_OF_A_PASS; step += 1) {
    await pool.query("UPDATE capacity_lease SET expires_at = expires_at WHERE fencing_token % $1 = $2", [
      PARTS_OF_A_PASS,
      step % PARTS_OF_A_PASS,
    ]);
  }
  await pool.query("VACUUM capacity_lease");
}

/** Throws unless all are still held, each renewed, with no history of that and nothing announced. */
async function checkRenewed(
  { context: { client }, aside: pool }: CapacityService,
  leases: number,
  start: Date,
): Promise<void> {
  const { rows } = await pool.query<{ renewed: number; history: number; announced: number }>(
    `SELECT
       (SELECT count(*)::int FROM capacity_lease
        WHERE state = 'ACTIVE' AND expires_at - make_interval(secs => ttl_seconds) >= $1) AS renewed,
       (SELECT count(*)::int FROM transition) AS history,
       (SELECT count(*)::int FROM outbox_message) AS announced`,
    [start],
  );
  const [found] = rows;
  if (found?.renewed !== leases || found.history !== leases || found.announced !== 0) {
    throw new Error(`${leases} leases were renewed, and the database says ${JSON.stringify(found)}`);
  }
  const differences = await capacityDifferences(client);
  if (differences.length > 0)
    throw new Error(`counters differ from leases: ${JSON.stringify(differences.slice(0, 3))}`);
}
