import type { ServiceImpl } from "@connectrpc/connect";
import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { RunState as StateCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { RunState } from "../generated/prisma/client.ts";
import type { Context } from "./context.ts";
import { definedEnumNamed } from "@runtime-cloud/service-kit/enum-named";
import { newestFirst, pageOf } from "./newest-first.ts";
import { plannedChangeMessage, planSummary, receiptEntryMessage, runMessage } from "./run-message.ts";
import { unsealed } from "./run-row.ts";
import { findRun } from "./runs.ts";

export function runQueries({ client }: Context) {
  return {
    async getProvisioningRun({ provisioningRunId }, call) {
      return { run: runMessage(await findRun(client, principalOf(call).tenantId, provisioningRunId)) };
    },

    async listProvisioningRuns(request, call) {
      const { tenantId } = principalOf(call);
      const filter = { environmentId: request.environmentId, state: request.state };
      const { take, orderBy, older } = newestFirst(request, filter);
      const rows = await client.provisioningRun.findMany({
        where: {
          tenantId,
          ...(request.environmentId !== "" && { environmentId: request.environmentId }),
          ...(request.state !== StateCode.UNSPECIFIED && {
            state: definedEnumNamed(RunState, StateCode[request.state]),
          }),
          ...older,
        },
        omit: unsealed,
        include: { specification: { select: { programVersion: true } } },
        orderBy,
        take,
      });
      const { page, nextPageToken } = pageOf(rows, take, filter);
      return { runs: page.map(runMessage), nextPageToken };
    },

    async getPlan({ provisioningRunId }, call) {
      const run = await findRun(client, principalOf(call).tenantId, provisioningRunId);
      if (!run.plannedAt) throw new NotFound(`run ${run.id} is ${run.state}: it has no plan${because(run.reason)}`);
      const changes = await client.plannedChange.findMany({ where: { runId: run.id }, orderBy: { ordinal: "asc" } });
      return {
        summary: planSummary(run),
        planDigest: run.planDigest ?? "",
        changes: changes.map(plannedChangeMessage),
      };
    },

    async getReceipt({ provisioningRunId }, call) {
      const run = await findRun(client, principalOf(call).tenantId, provisioningRunId);
      if (!run.applyingAt && run.state !== "APPLIED") {
        throw new NotFound(
          `run ${run.id} is ${run.state}: it applied nothing, so it has no receipt${because(run.reason)}`,
        );
      }
      const entries = await client.receiptEntry.findMany({ where: { runId: run.id }, orderBy: { ordinal: "asc" } });
      return { entries: entries.map(receiptEntryMessage) };
    },
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

function because(reason: string | null): string {
  return reason === null ? "" : ` (${reason})`;
}
