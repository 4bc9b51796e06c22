import type { ConnectRouter } from "@connectrpc/connect";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import type { Context } from "./context.ts";
import { openEnvironmentNews } from "./environment-news.ts";
import { environmentRoutes } from "./environments.ts";
import { findingRoutes } from "./findings.ts";
import { listInventoryChanges } from "./list-inventory-changes.ts";
import { proposalRoutes } from "./proposals.ts";
import { suppressionRuleRoutes } from "./suppression-rules.ts";
import { watchEnvironment } from "./watch-environment.ts";

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
