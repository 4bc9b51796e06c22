import type { ConnectRouter } from "@connectrpc/connect";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { callUnits } from "./leases/call-unit.ts";
import { usageRoutes } from "./quotas/capacity-usage.ts";
import type { Context } from "./context.ts";
import { explainRoutes } from "./leases/explain-capacity.ts";
import type { LeaseDesk } from "./desk/lease-desk.ts";
import { leaseQueryRoutes } from "./leases/lease-queries.ts";
import { leaseRoutes } from "./leases/leases.ts";
import { poolRoutes } from "./pools/pools.ts";
import { quotaRoutes } from "./quotas/quotas.ts";

/** Every RPC of the service. */
export function routes(context: Context, desk: LeaseDesk): (router: ConnectRouter) => void {
  const units = callUnits(context);
  return (router) => {
    router.service(ExecutionCapacityService, {
      ...poolRoutes(context, units),
      ...quotaRoutes(context, units),
      ...leaseRoutes(context, desk, units),
      ...leaseQueryRoutes(context),
      ...usageRoutes(context),
      ...explainRoutes(context),
    });
  };
}
