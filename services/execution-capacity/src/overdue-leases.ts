import { deadlineCause } from "@runtime-cloud/eventing/cause";
import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { CapacityLease } from "../generated/prisma/client.ts";
import { lockCapacity } from "./capacity-lock.ts";
import type { Context } from "./context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { settle } from "./settle.ts";

/** How long an expired lease may hold its slots, or a holder wait in vain, where no wake-up came. */
const SWEEP_EVERY_MS = 1_500;

/** Ends the leases that weren't renewed in time. */
export function leaseExpiry(context: Context): Deadline {
  return overdueLeases(context, "lease-expiry", (now) =>
    context.client.capacityLease.findFirst({
      where: { state: "ACTIVE", expiresAt: { lte: now } },
      orderBy: { expiresAt: "asc" },
    }),
  );
}

/** Withdraws the leases that were waited for long enough. */
export function waitOver(context: Context): Deadline {
  return overdueLeases(context, "wait-over", (now) =>
    context.client.capacityLease.findFirst({
      where: { state: "WAITING", waitDeadline: { lte: now } },
      orderBy: { waitDeadline: "asc" },
    }),
  );
}

/** A pool at a time, the one with the oldest first; settling the pool ends them. */
function overdueLeases(context: Context, kind: string, oldest: (now: Date) => Promise<CapacityLease | null>): Deadline {
  return {
    kind,
    sweepEveryMs: SWEEP_EVERY_MS,
    async run() {
      const lease = await oldest(await transactionNow(context.client));
      if (!lease) return { ended: [] };
      const pools = [{ tenantId: lease.poolTenantId, id: lease.poolId }];
      const ended = await unitOfWork(context, deadlineCause(kind, context.newId), async (unit) =>
        settle(await lockCapacity(context, unit, { scopes: [], pools })),
      );
      return { ended, more: ended.length > 0 };
    },
  };
}
