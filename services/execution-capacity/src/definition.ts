import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { defineService } from "@runtime-cloud/eventing/service-definition";
import { PrismaClient } from "../generated/prisma/client.ts";
import type { Context } from "./context.ts";
import { deadlines } from "./deadlines.ts";
import { inbox } from "./inbox.ts";
import { provisioningClient, provisioningTransport } from "./provisioning-client.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";

/** Hands out leases on worker pools under quotas. */
export const executionCapacity = defineService({
  name: "execution-capacity",
  subscriber: "ExecutionCapacityService",
  settings,
  client: (adapter) => new PrismaClient({ adapter }),
  async parts(shared) {
    const transport = provisioningTransport(shared.settings);
    const context: Context = { ...shared, provisioning: provisioningClient(transport) };
    return {
      routes: routes(context),
      services: [ExecutionCapacityService.typeName],
      handlers: inbox(context),
      deadlines: deadlines(context),
      workQueues: [],
      stop: async () => transport.close(),
    };
  },
});
