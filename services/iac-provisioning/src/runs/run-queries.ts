import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { PlannedChangeSchema, ReceiptEntrySchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { RunState as StateCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { definedEnumNamed } from "@runtime-cloud/service-kit/enum-named";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { RunState } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { newestFirst, pageOf } from "./newest-first.ts";
import { ordinalPage } from "./ordinal-page.ts";
import { queuePositions } from "./queue-position.ts";
import { plannedChangeMessage, planSummary, receiptEntryMessage, runMessage } from "./run-message.ts";
import { unsealed } from "./run-row.ts";
import { findRun } from "./runs.ts";

export function runQueries({ client }: Context) {
  return {
    async getProvisioningRun({ provisioningRunId }, call) {
      const run = await findRun(client, principalOf(call).tenantId, provisioningRunId);
      const positions = await queuePositions(client, [run]);
      return { run: runMessage(run, { queuePosition: positions.get(run.id) }) };
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
      const positions = await queuePositions(client, page);
      return { runs: page.map((run) => runMessage(run, { queuePosition: positions.get(run.id) })), nextPageToken };
    },

    async getPlan({ provisioningRunId, ...request }, call) {
      const run = await findRun(client, principalOf(call).tenantId, provisioningRunId);
      if (!run.plannedAt) throw new NotFound(`run ${run.id} is ${run.state}: it has no plan${because(run.reason)}`);
      const planDigest = run.planDigest ?? "";
      const { items, nextPageToken } = await ordinalPage({
        request,
        filter: { planOf: run.id, planDigest },
        schema: PlannedChangeSchema,
        async read(from, count) {
          const changes = await client.plannedChange.findMany(numbered(run.id, from, count));
          return changes.map((change) => create(PlannedChangeSchema, plannedChangeMessage(change)));
        },
      });
      return { summary: planSummary(run), planDigest, changes: items, nextPageToken };
    },

    async getReceipt({ provisioningRunId, ...request }, call) {
      const run = await findRun(client, principalOf(call).tenantId, provisioningRunId);
      if (!run.applyingAt && run.state !== "APPLIED") {
        throw new NotFound(
          `run ${run.id} is ${run.state}: it applied nothing, so it has no receipt${because(run.reason)}`,
        );
      }
      const { items, nextPageToken } = await ordinalPage({
        request,
        filter: { receiptOf: run.id },
        schema: ReceiptEntrySchema,
        async read(from, count) {
          const entries = await client.receiptEntry.findMany(numbered(run.id, from, count));
          return entries.map((entry) => create(ReceiptEntrySchema, receiptEntryMessage(entry)));
        },
      });
      return { entries: items, nextPageToken };
    },
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

function numbered(runId: string, from: number, count: number) {
  return { where: { runId, ordinal: { gte: from } }, orderBy: { ordinal: "asc" as const }, take: count };
}

function because(reason: string | null): string {
  return reason === null ? "" : ` (${reason})`;
}
