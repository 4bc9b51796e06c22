import type { ConnectRouter } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { Context } from "./context.ts";
import { inspectionRoutes } from "./inspect-environment.ts";
import { runQueries } from "./run-queries.ts";
import { runRoutes } from "./runs.ts";
import { specificationRoutes } from "./specifications.ts";

/** Every RPC of IaCProvisioningService. */
export function routes(context: Context) {
  return (router: ConnectRouter): void => {
    router.service(IaCProvisioningService, {
      ...specificationRoutes(context),
      ...runRoutes(context),
      ...runQueries(context),
      ...inspectionRoutes(context),
    });
  };
}
