// The service alone, as `memory.ts` starts it on DATABASE_URL and REDIS_URL: grants LEASES leases, renews them at
// RENEWALS_PER_SECOND for SECONDS, tells its parent what memory that took, and ends.
import type pg from "pg";
import { z } from "zod";
import { openCapacityService } from "./capacity-service.ts";
import { acquisition, renewal } from "./desk-operations.ts";
import { eachOf, numbers } from "./each-of.ts";
import type { LiveLease } from "./lease-rows.ts";
import { MEMORY_POOL, type MemoryReport } from "./memory.ts";
import { steadily } from "./steadily.ts";

const TENANTS = 200;
const TTL_MS = 3_600_000;
const CALLS_AT_ONCE = 256;
const SAMPLE_EVERY_MS = 10;
const BYTES_PER_MIB = 1_048_576;
const settingsSchema = z.object({
  DATABASE_URL: z.string(),
  REDIS_URL: z.string(),
  LEASES: z.coerce.number(),
  RENEWALS_PER_SECOND: z.coerce.number(),
  SECONDS: z.coerce.number(),
});

// Without its parent there is nobody to tell.
process.once("disconnect", () => process.exit());
const report = await grantAndRenew(settingsSchema.parse(process.env));
process.send?.(report, () => process.disconnect());

async function grantAndRenew(settings: z.output<typeof settingsSchema>): Promise<MemoryReport> {
  const { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, LEASES, RENEWALS_PER_SECOND, SECONDS } = settings;
  const { aside, context, desk, close } = openCapacityService({ databaseUrl, redisUrl });
  await context.pool.query("SELECT");
  const beforeMb = residentMb();

  await eachOf(numbers(LEASES), CALLS_AT_ONCE, async (place) => {
    const tenantId = `tenant-${place % TENANTS}`;
    const { lease } = await desk.submit(acquisition({ tenantId, poolId: MEMORY_POOL, ttlMs: TTL_MS }));
    if (lease.state !== "ACTIVE") throw new Error(`a lease is ${lease.state} in a pool that has a slot for each`);
  });
  const grantedMb = residentMb();

  let renewingPeakMb = grantedMb;
  const sampling = setInterval(() => (renewingPeakMb = Math.max(renewingPeakMb, residentMb())), SAMPLE_EVERY_MS);
  let renewed = 0;
  for (let second = 0; second < SECONDS; second += 1) {
    // What holders know is theirs: this process reads what it needs for a second, and forgets it.
    const leases = await someLeases(aside, RENEWALS_PER_SECOND);
    await steadily({ perSecond: RENEWALS_PER_SECOND, count: RENEWALS_PER_SECOND }, async (place) => {
      const lease = leases[place % leases.length];
      const outcome = lease && (await desk.submit(renewal(lease, TTL_MS)));
      if (outcome?.renewal === "RENEWED") renewed += 1;
    });
  }
  clearInterval(sampling);
  await close();
  return { beforeMb, grantedMb, renewingPeakMb, renewed };
}

/** Those that are to end first. */
async function someLeases(pool: pg.Pool, count: number): Promise<LiveLease[]> {
  const { rows } = await pool.query<{ tenantId: string; id: string; token: string }>(
    `SELECT tenant_id AS "tenantId", id, fencing_token AS token
     FROM capacity_lease WHERE state = 'ACTIVE' ORDER BY expires_at LIMIT $1`,
    [count],
  );
  return rows.map(({ token, ...lease }) => ({ ...lease, fencingToken: BigInt(token) }));
}

function residentMb(): number {
  return process.memoryUsage.rss() / BYTES_PER_MIB;
}
