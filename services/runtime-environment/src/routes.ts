import type { ConnectRouter } from "@connectrpc/connect";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import type { Context } from "./context.ts";
import { environmentRoutes } from "./environments.ts";
import { findingRoutes } from "./findings.ts";
import { proposalRoutes } from "./proposals.ts";

export function routes(context: Context) {
  const service = { ...environmentRoutes(context), ...findingRoutes(context), ...proposalRoutes(context) };
  return (router: ConnectRouter) => {
    router.service(RuntimeEnvironmentService, service);
  };
}
