import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { peer } from "@runtime-cloud/eventing/peer";
import { defineService } from "@runtime-cloud/eventing/service-definition";
import { PrismaClient } from "../generated/prisma/client.ts";
import { startChangeRetention } from "./inventory/change-retention.ts";
import type { Context } from "./context.ts";
import { deadlines } from "./deadlines.ts";
import { registerEnvironmentMetrics } from "./environments/environment-metrics.ts";
import { inboxHandlers } from "./inbox.ts";
import { registerObservationMetrics } from "./observing/observation-metrics.ts";
import { observations } from "./observing/observations.ts";
import { kubernetesAccess } from "./observers/kubernetes/kubernetes-access.ts";
import { routes } from "./routes.ts";
import { hurryLook } from "./observing/schedule.ts";
import { settings } from "./settings.ts";

export const runtimeEnvironment = defineService({
  name: "runtime-environment",
  subscriber: "RuntimeEnvironmentService",
  settings,
  client: (adapter) => new PrismaClient({ adapter }),
  async parts(shared, registry) {
    const { settings: given } = shared;
    const provisioning = peer(IaCProvisioningService, given.PROVISIONING_URL, given);
    const kubernetes = kubernetesAccess({ ...shared, onChange: (id) => hurryLook(shared, id) });
    const context: Context = { ...shared, provisioning, kubernetes, measures: registerObservationMetrics(registry) };
    registerEnvironmentMetrics(context, registry);
    const retention = startChangeRetention(context, registry);
    return {
      routes: routes(context),
      services: [RuntimeEnvironmentService.typeName],
      handlers: inboxHandlers(context),
      deadlines: deadlines(context),
      workQueues: [observations(context)],
      async stop() {
        await retention.stop();
        await kubernetes.close();
        provisioning.close();
      },
    };
  },
});
