import type { HandlerContext } from "@connectrpc/connect";
import { callCause } from "@runtime-cloud/eventing/cause";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context, ServiceUnit } from "../context.ts";
import { lanes } from "./tenant-lane.ts";

/** Does a command's work in a transaction, for the tenant that calls. */
export type InUnit = <T>(call: HandlerContext, work: (unit: ServiceUnit, tenantId: string) => Promise<T>) => Promise<T>;

export interface CallUnits {
  /** For what takes the tenant's lock: one call of a tenant at a time. */
  changing: InUnit;
  /** For what takes a lease's lock alone. */
  free: InUnit;
}

export function callUnits(context: Context): CallUnits {
  const inLane = lanes();
  const free: InUnit = (call, work) =>
    unitOfWork(context, callCause(call, context.newId), (unit) => work(unit, principalOf(call).tenantId));
  return {
    free,
    changing: (call, work) => inLane(principalOf(call).tenantId, call.signal, () => free(call, work)),
  };
}
