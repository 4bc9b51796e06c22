import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import type { Context } from "./context.ts";
import { drainDeadline } from "./drain-deadline.ts";
import { leaseExpiry, waitOver } from "./overdue-leases.ts";
import { poolResize } from "./pool-resize.ts";

/** All that ends, or is asked for again, by time. */
export function deadlines(context: Context): Deadline[] {
  return [leaseExpiry(context), waitOver(context), drainDeadline(context), poolResize(context)];
}
