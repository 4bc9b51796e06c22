import type { ConnectRouter } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { adoptionRoutes } from "./adopt-observed.ts";
import type { Context } from "./context.ts";
import { inspectionRoutes } from "./inspect-environment.ts";
import { programQueries } from "./program-queries.ts";
import { publishingRoutes } from "./publish-program.ts";
import { recoveryRoutes } from "./recovery-manifest.ts";
import { resolveRoutes } from "./resolve-indeterminate.ts";
import { runQueries } from "./run-queries.ts";
import { runStreams } from "./run-streams.ts";
import { runRoutes } from "./runs.ts";
import { specificationRoutes } from "./specifications.ts";

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
      ...programQueries(context),
    });
  };
}
