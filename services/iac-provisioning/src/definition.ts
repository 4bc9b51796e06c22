import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { defineService, workOn } from "@runtime-cloud/eventing/service-definition";
import { z } from "zod";
import { PrismaClient } from "../generated/prisma/client.ts";
import type { Context } from "./context.ts";
import { deadlines } from "./deadlines.ts";
import { executeNext } from "./execution/executor.ts";
import { inbox } from "./inbox.ts";
import { openContext } from "./open-context.ts";
import { routes } from "./routes.ts";
import { registerRunMetrics } from "./runs/run-metrics.ts";
import { RUN_QUEUE } from "./runs/run-queue.ts";
import { startSalvage } from "./recovery/salvage-workspaces.ts";
import { settings } from "./settings.ts";

/**
 * Plans and applies desired states. In the role `api` it works on no runs; in the role `executor` it answers no calls.
 * Events and deadlines are taken in by every role: they are light, and so none is left to a role that isn't there.
 */
export const iacProvisioning = defineService({
  name: "iac-provisioning",
  subscriber: "IaCProvisioningService",
  settings,
  client: (adapter) => new PrismaClient({ adapter }),
  async parts(shared, registry) {
    const context = await openContext(shared);
    registerRunMetrics(context, registry);
    const { ROLE } = context.settings;
    const salvage = ROLE === "api" ? undefined : startSalvage(context);
    return {
      routes: ROLE === "executor" ? () => undefined : routes(context),
      services: [IaCProvisioningService.typeName],
      handlers: inbox(context),
      deadlines: deadlines(context),
      workQueues: ROLE === "api" ? [] : [runs(context)],
      async stop() {
        await salvage?.stop();
        await context.close();
      },
    };
  },
});

function runs(context: Context) {
  return workOn({
    name: RUN_QUEUE,
    concurrency: context.settings.EXECUTOR_CONCURRENCY,
    data: z.object({ runId: z.guid() }),
    handle: async ({ runId }, signal) => (await executeNext(context, runId, signal)) ?? "no run waits for an executor",
  });
}
