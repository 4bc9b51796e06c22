import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

import { startRedis } from "@runtime-cloud/local-servers/redis";
import pg from "pg";
import { z } from "zod";
import type { Findings } from "../report.ts";
import { figureOf, ratio, takeTurns, type Contestant } from "../rounds.ts";
import type { BenchServers } from "../servers.ts";
import { inThousands, rowsHeldBack } from "./backlog-rows.ts";
import { announce } from "./outbox-rows.ts";

export interface MemorySizes {
  readonly rounds: number;
  /** Rows of the two backlogs that are compared. */
  readonly sizes: readonly [smaller: number, larger: number];
}

const RELAY = fileURLToPath(new URL("relay-process.ts", import.meta.url));

/** What `relay-process.ts` tells when the outbox is published. */
const reportSchema = z.object({
  beforeMb: z.number(),
  peakMb: z.number(),
  afterMb: z.number(),
  seconds: z.number(),
  /** Jobs in the subscriber's queue. */
  delivered: z.number(),
  /** Rows that are still to be published. */
  waiting: z.number(),
});
export type RelayReport = z.output<typeof reportSchema>;

/** A relay in a process of its own, with a backlog before it: how its resident memory grows, by the backlog's size. */
export async function measureMemory(servers: BenchServers, { sizes, rounds }: MemorySizes): Promise<Findings> {
  const url = await servers.database("runtime-environment", "relay_memory");
  const pool = new pg.Pool({ connectionString: url });
  try {
    const measured = await takeTurns(
      sizes.map((rows) => relayAlone(pool, url, rows)),
      rounds,
    );
    return findings(measured, sizes);
  } finally {
    await pool.end();
  }
}

function findings(measured: Findings["measured"], [smaller, larger]: MemorySizes["sizes"]): Findings {
  const [small, large] = [inThousands(smaller), inThousands(larger)];
  return {
    measured,
    headlines: {
      relay_rss_peak_mb: {
        meaning: `most resident memory of a relay's process that publishes ${large} rows, in MiB`,
        spread: figureOf(measured, "rss_peak_mb", `relay_alone_${large}`),
      },
      [`relay_rss_growth_mb_${large}`]: {
        meaning: `how far that lies above the same process before it publishes, in MiB`,
        spread: figureOf(measured, "rss_growth_mb", `relay_alone_${large}`),
      },
    },
    ratios: {
      [`relay_rss_${large}_vs_${small}`]: {
        meaning: `most resident memory with ${large} rows ÷ with ${small}; near 1 is bounded`,
        spread: ratio(measured, "rss_peak_mb", `relay_alone_${large}`, `relay_alone_${small}`),
      },
    },
  };
}

function relayAlone(pool: pg.Pool, databaseUrl: string, rows: number): Contestant {
  return {
    name: `relay_alone_${inThousands(rows)}`,
    async round() {
      await pool.query("TRUNCATE outbox_message, unsequenced_event");
      await rowsHeldBack(rows, (events) => announce(pool, events));
      const redis = await startRedis();
      try {
        const { beforeMb, peakMb, afterMb, seconds, delivered, waiting } = await runRelay(databaseUrl, redis.url);
        return {
          figures: {
            rss_before_mb: beforeMb,
            rss_peak_mb: peakMb,
            rss_after_mb: afterMb,
            rss_growth_mb: peakMb - beforeMb,
            published_per_second: rows / seconds,
          },
          async check() {
            if (delivered === rows && waiting === 0) return;
            throw new Error(`${delivered} of ${rows} events were delivered, and ${waiting} wait`);
          },
        };
      } finally {
        await redis.stop();
      }
    },
  };
}

async function runRelay(databaseUrl: string, redisUrl: string): Promise<RelayReport> {
  const relay = fork(RELAY, [], {
    execArgv: ["--import", "tsx"],
    env: { ...process.env, DATABASE_URL: databaseUrl, REDIS_URL: redisUrl },
  });
  const ended = once(relay, "exit");
  const report = new Promise<unknown>((resolve, reject) => {
    relay.once("message", resolve);
    ended.then(([code]) => reject(new Error(`the relay's process ended with ${String(code)}`)), reject);
  });
  try {
    return reportSchema.parse(await report);
  } finally {
    await ended;
  }
}
