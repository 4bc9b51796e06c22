import type { Context } from "@runtime-cloud/execution-capacity/context";
import { openCapacityService } from "./capacity-service.ts";
import { acquisition, release } from "./desk-operations.ts";
import { HOT_SCOPE } from "./hot-scope.ts";
import type { LeasePath } from "./lease-path.ts";
import { leaseCensus } from "./lease-census.ts";

const { tenantId, projectId, poolId, ttlSeconds } = HOT_SCOPE;

/** Ours, called in the process that it runs in, on a database that holds the hot scope. */
export async function openServicePath(databaseUrl: string): Promise<LeasePath & { context: Context }> {
  const { context, desk, close } = openCapacityService({ databaseUrl });
  return {
    name: "runtime_cloud",
    about:
      "the desk that every way in leads to, called in its process: machines decide, and what comes at one time is one commit of counters, leases, history, outbox and the log's queue",
    context,
    async acquire() {
      const { lease } = await desk.submit(acquisition({ tenantId, projectId, poolId, ttlMs: ttlSeconds * 1_000 }));
      if (lease.state !== "ACTIVE" || lease.fencingToken === null)
        throw new Error(`lease ${lease.id} is ${lease.state}`);
      return {
        token: lease.fencingToken,
        async release() {
          const { lease: ended } = await desk.submit(release(lease));
          if (ended.state !== "RELEASED") throw new Error(`lease ${lease.id} ended ${ended.state}`);
        },
      };
    },
    check: await leaseCensus(context),
    close,
  };
}
