import { databaseNow } from "@runtime-cloud/eventing/database-clock";
import { gather } from "@runtime-cloud/eventing/gather";
import type { CapacityLease } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { type LeaseMessage, messageOf } from "./lease-message.ts";
import { type Standing, standingsOf } from "../queue/waiting.ts";

/** What answers about leases need to be read beside them, read together with whoever asks at the same time. */
export interface LeaseReads {
  /** A lease as it is answered, with how it stands now while it waits. */
  message(lease: CapacityLease): Promise<LeaseMessage>;
  /** The database's instant, after the call. */
  now(): Promise<Date>;
}

const MAX_STANDINGS = 500;
const MAX_ASKING_NOW = 10_000;
const TARGET_MS = 100;

export function leaseReads({ client, pool }: Pick<Context, "client" | "pool">): LeaseReads {
  const standing = gather<CapacityLease, Standing | undefined>({
    work: (leases) => standings(client, leases),
    lanes: 1,
    largest: MAX_STANDINGS,
    targetMs: TARGET_MS,
  });
  const now = gather<undefined, Date>({
    async work(asking) {
      const value = await databaseNow(pool);
      return asking.map(() => ({ status: "fulfilled", value }));
    },
    lanes: 1,
    largest: MAX_ASKING_NOW,
    targetMs: TARGET_MS,
  });

  return {
    message: async (lease) => messageOf(lease, lease.state === "WAITING" ? await standing(lease) : undefined),
    now: () => now(undefined),
  };
}

/** Tenant by tenant, as standings are read; one tenant's failure is its own. */
async function standings(
  client: Context["client"],
  leases: readonly CapacityLease[],
): Promise<PromiseSettledResult<Standing | undefined>[]> {
  const byTenant = new Map<string, CapacityLease[]>();
  for (const lease of leases) {
    const others = byTenant.get(lease.tenantId);
    if (others) others.push(lease);
    else byTenant.set(lease.tenantId, [lease]);
  }
  const read = new Map<string, PromiseSettledResult<Map<string, Standing>>>();
  for (const [tenantId, own] of byTenant) {
    const [result] = await Promise.allSettled([standingsOf(client, own)]);
    read.set(tenantId, result);
  }
  return leases.map(({ tenantId, id }) => {
    const result = read.get(tenantId);
    return result?.status === "rejected" ? result : { status: "fulfilled", value: result?.value.get(id) };
  });
}
