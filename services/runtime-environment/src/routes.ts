import type { ConnectRouter } from "@connectrpc/connect";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import type { Context } from "./context.ts";
import { openEnvironmentNews } from "./environments/environment-news.ts";
import { environmentRoutes } from "./environments/environments.ts";
import { findingRoutes } from "./findings/findings.ts";
import { listInventoryChanges } from "./inventory/list-inventory-changes.ts";
import { proposalRoutes } from "./proposals/proposals.ts";
import { suppressionRuleRoutes } from "./suppression/suppression-rules.ts";
import { watchEnvironment } from "./environments/watch-environment.ts";

export function routes(context: Context) {
  const service = {
    ...environmentRoutes(context),
    ...findingRoutes(context),
    ...proposalRoutes(context),
    ...suppressionRuleRoutes(context),
    listInventoryChanges: listInventoryChanges(context),
    watchEnvironment: watchEnvironment(context, openEnvironmentNews(context)),
  };
  return (router: ConnectRouter) => {
    router.service(RuntimeEnvironmentService, service);
  };
}
