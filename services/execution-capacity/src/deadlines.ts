import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import type { Context } from "./context.ts";
import { drainDeadline } from "./pools/drain-deadline.ts";
import type { LeaseDesk } from "./desk/lease-desk.ts";
import { leaseExpiry, waitOver } from "./desk/overdue-leases.ts";
import { poolResize } from "./pools/pool-resize.ts";
import { poolResume } from "./pools/pool-resume.ts";

/** All that ends, or is asked for again, by time. */
export function deadlines(context: Context, desk: LeaseDesk): Deadline[] {
  return [
    leaseExpiry(context, desk),
    waitOver(context, desk),
    drainDeadline(context),
    poolResize(context),
    poolResume(context),
  ];
}
