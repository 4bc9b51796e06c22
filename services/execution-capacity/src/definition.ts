import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { peer } from "@runtime-cloud/eventing/peer";
import { defineService } from "@runtime-cloud/eventing/service-definition";
import { PrismaClient } from "../generated/prisma/client.ts";
import type { Context } from "./context.ts";
import { deadlines } from "./deadlines.ts";
import { inbox } from "./inbox.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";

/** Hands out leases on worker pools under quotas. */
export const executionCapacity = defineService({
  name: "execution-capacity",
  subscriber: "ExecutionCapacityService",
  settings,
  client: (adapter) => new PrismaClient({ adapter }),
  async parts(shared) {
    const { settings: given } = shared;
    const provisioning = peer(IaCProvisioningService, given.PROVISIONING_URL, given);
    const context: Context = { ...shared, provisioning };
    return {
      routes: routes(context),
      services: [ExecutionCapacityService.typeName],
      handlers: inbox(context),
      deadlines: deadlines(context),
      workQueues: [],
      stop: async () => provisioning.close(),
    };
  },
});
