import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { defineService, workOn } from "@runtime-cloud/eventing/service-definition";
import { z } from "zod";
import { PrismaClient } from "../generated/prisma/client.ts";
import type { Context } from "./context.ts";
import { deadlines } from "./deadlines.ts";
import { executeRun } from "./executor.ts";
import { inbox } from "./inbox.ts";
import { inspectionRoutes } from "./inspect-environment.ts";
import { openContext } from "./open-context.ts";
import { runQueries } from "./run-queries.ts";
import { RUN_QUEUE } from "./run-queue.ts";
import { runRoutes } from "./runs.ts";
import { settings } from "./settings.ts";
import { specificationRoutes } from "./specifications.ts";

export const iacProvisioning = defineService({
  name: "iac-provisioning",
  subscriber: "IaCProvisioningService",
  settings,
  client: (adapter) => new PrismaClient({ adapter }),
  async parts(shared) {
    const context = await openContext(shared);
    const { ROLE } = context.settings;
    return {
      routes(router) {
        if (ROLE !== "executor") router.service(IaCProvisioningService, routes(context));
      },
      services: [IaCProvisioningService.typeName],
      handlers: inbox(context),
      deadlines: deadlines(context),
      workQueues: ROLE === "api" ? [] : [runs(context)],
      stop: () => context.close(),
    };
  },
});

function routes(context: Context) {
  return {
    ...specificationRoutes(context),
    ...runRoutes(context),
    ...runQueries(context),
    ...inspectionRoutes(context),
  };
}

function runs(context: Context) {
  return workOn({
    name: RUN_QUEUE,
    concurrency: context.settings.EXECUTOR_CONCURRENCY,
    data: z.object({ runId: z.guid() }),
    handle: ({ runId }, signal) => executeRun(context, runId, signal),
  });
}
