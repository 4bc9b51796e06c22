import type { ConnectRouter } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { adoptionRoutes } from "./environments/adopt-observed.ts";
import type { Context } from "./context.ts";
import { inspectionRoutes } from "./environments/inspect-environment.ts";
import { programQueries } from "./programs/program-queries.ts";
import { publishingRoutes } from "./programs/publish-program.ts";
import { unpublishingRoutes } from "./programs/unpublish-program.ts";
import { recoveryRoutes } from "./recovery/recovery-manifest.ts";
import { resolveRoutes } from "./recovery/resolve-indeterminate.ts";
import { runQueries } from "./runs/run-queries.ts";
import { runStreams } from "./run-streams/run-streams.ts";
import { runRoutes } from "./runs/runs.ts";
import { specificationRoutes } from "./specifications/specifications.ts";

/** Every RPC of IaCProvisioningService. */
export function routes(context: Context) {
  return (router: ConnectRouter): void => {
    router.service(IaCProvisioningService, {
      ...specificationRoutes(context),
      ...runRoutes(context),
      ...resolveRoutes(context),
      ...runQueries(context),
      ...recoveryRoutes(context),
      ...runStreams(context),
      ...inspectionRoutes(context),
      ...adoptionRoutes(context),
      ...publishingRoutes(context),
      ...unpublishingRoutes(context),
      ...programQueries(context),
    });
  };
}
