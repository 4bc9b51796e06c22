// The relay alone, as `memory.ts` starts it: publishes the outbox of DATABASE_URL to the Redis of REDIS_URL, tells its
// parent what memory that took, and ends.
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { startRelay } from "@runtime-cloud/eventing/relay";
import { until } from "@runtime-cloud/local-servers/until";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import pg from "pg";
import { z } from "zod";
import type { RelayReport } from "./memory.ts";

const SUBSCRIBER = "IaCProvisioningService";
const SAMPLE_EVERY_MS = 10;
const TIMEOUT_MS = 300_000;
const BYTES_PER_MIB = 1_048_576;
const KIB_PER_MIB = 1_024;

// Without its parent there is nobody to tell.
process.once("disconnect", () => process.exit());
const settings = z.object({ DATABASE_URL: z.string(), REDIS_URL: z.string() }).parse(process.env);
const report = await relayBacklog(settings.DATABASE_URL, settings.REDIS_URL);
process.send?.(report, () => process.disconnect());

async function relayBacklog(databaseUrl: string, redisUrl: string): Promise<RelayReport> {
  const logger = createLogger({ service: "bench", level: "warn", pretty: true, destination: process.stderr });
  const pool = new pg.Pool({ connectionString: databaseUrl });
  const backend = redisBackend({ url: redisUrl, prefix: "bench-relay-alone", logger });
  const inbox = backend.queue(inboxOf(SUBSCRIBER));
  await Promise.all([pool.query("SELECT"), inbox.waitUntilReady()]);

  const memory = sampleMemory();
  const started = performance.now();
  const relay = startRelay({ pool, backend, subscribers: [SUBSCRIBER], logger });
  await until("an outbox that is published whole", TIMEOUT_MS, async () => {
    const { rows } = await pool.query("SELECT FROM outbox_message WHERE published_at IS NULL LIMIT 1");
    return rows.length === 0 || undefined;
  });
  const seconds = (performance.now() - started) / 1_000;
  const used = memory.stop();
  const { waiting } = await relay.lag();
  const delivered = await inbox.count();
  await relay.stop();
  await backend.close();
  await pool.end();
  return { ...used, seconds, delivered, waiting };
}

function sampleMemory(): { stop(): Pick<RelayReport, "beforeMb" | "peakMb" | "afterMb"> } {
  const now = () => process.memoryUsage.rss() / BYTES_PER_MIB;
  // The kernel's own peak misses no moment, but counts the start of the process too.
  const peakEver = () => process.resourceUsage().maxRSS / KIB_PER_MIB;
  const beforeMb = now();
  const peakBefore = peakEver();
  let sampledPeak = beforeMb;
  const sampling = setInterval(() => (sampledPeak = Math.max(sampledPeak, now())), SAMPLE_EVERY_MS);
  return {
    stop() {
      clearInterval(sampling);
      const afterMb = now();
      const peak = peakEver();
      return { beforeMb, afterMb, peakMb: peak > peakBefore ? peak : Math.max(sampledPeak, afterMb) };
    },
  };
}
