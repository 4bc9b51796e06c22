import type { ServiceImpl } from "@connectrpc/connect";
import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { Context } from "../context.ts";
import { openRunNews } from "./run-news.ts";
import { tailLog } from "./tail-log.ts";
import { watchRun } from "./watch-run.ts";

export function runStreams(context: Context) {
  const news = openRunNews(context);
  return {
    watchProvisioningRun: watchRun(context, news),
    tailProvisioningLog: tailLog(context, news),
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}
