import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { peer } from "@runtime-cloud/eventing/peer";
import { defineService } from "@runtime-cloud/eventing/service-definition";
import { PrismaClient } from "../generated/prisma/client.ts";
import { startCapacityCheck } from "./capacity/capacity-check.ts";
import { registerCapacityMetrics } from "./capacity/capacity-metrics.ts";
import type { Context } from "./context.ts";
import { deadlines } from "./deadlines.ts";
import { inbox } from "./inbox.ts";
import { registerDeskMetrics } from "./desk/desk-metrics.ts";
import { openLeaseDesk } from "./desk/lease-desk.ts";
import { openLeaseNews } from "./leases/lease-news.ts";
import { startLeaseRetention } from "./leases/lease-retention.ts";
import { routes } from "./routes.ts";
import { settings } from "./settings.ts";

/** Hands out leases on worker pools under quotas. */
export const executionCapacity = defineService({
  name: "execution-capacity",
  subscriber: "ExecutionCapacityService",
  settings,
  client: (adapter) => new PrismaClient({ adapter }),
  async parts(shared, registry) {
    const { settings: given } = shared;
    const provisioning = peer(IaCProvisioningService, given.PROVISIONING_URL, given);
    const context: Context = { ...shared, provisioning, news: openLeaseNews(shared) };
    const desk = openLeaseDesk(context, registerDeskMetrics(registry));
    registerCapacityMetrics(context, registry);
    const sweeps = [startCapacityCheck(context, registry), startLeaseRetention(context, registry)];
    return {
      routes: routes(context, desk),
      services: [ExecutionCapacityService.typeName],
      handlers: inbox(context),
      deadlines: deadlines(context, desk),
      workQueues: [],
      async stop() {
        await Promise.all([context.news, ...sweeps].map((part) => part.stop()));
        provisioning.close();
      },
    };
  },
});
