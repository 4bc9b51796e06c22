import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  PlannedChangeSchema,
  ProvisioningRunSchema,
  ReceiptEntrySchema,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import {
  ProvisioningKind,
  ResourceOutcome,
  RunMode,
  RunState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { PlannedChange, ReceiptEntry } from "../generated/prisma/client.ts";
import { jsonObject } from "./json-object.ts";
import type { Run } from "./run-row.ts";

export type RunWithProgram = Run & { specification: { programVersion: string } };

export function runMessage(run: RunWithProgram): MessageInitShape<typeof ProvisioningRunSchema> {
  return {
    provisioningRunId: run.id,
    tenantId: run.tenantId,
    projectId: run.projectId,
    environmentId: run.environmentId,
    kind: ProvisioningKind[run.kind],
    mode: RunMode[run.mode],
    state: RunState[run.state],
    specificationId: run.specificationId,
    specificationVersion: run.specificationVersion,
    programVersion: run.specification.programVersion,
    engine: run.engine ?? undefined,
    promotionId: run.promotionId ?? undefined,
    approvalId: run.approvalId ?? undefined,
    proposalId: run.proposalId ?? undefined,
    planSummary: run.plannedAt ? planSummary(run) : undefined,
    planDigest: run.planDigest ?? undefined,
    reason: run.reason ?? undefined,
    requestedBy: run.requestedBy,
    decidedBy: run.decidedBy ?? undefined,
    queuedAt: timestampFromDate(run.queuedAt),
    plannedAt: timestamp(run.plannedAt),
    applyingAt: timestamp(run.applyingAt),
    endedAt: timestamp(run.endedAt),
    expiresAt: timestamp(run.expiresAt),
    outputs: run.outputs === null ? undefined : jsonObject(run.outputs),
  };
}

export function planSummary({ adds, changes, deletes, replaces, destructive }: Run) {
  return { adds, changes, deletes, replaces, destructive };
}

export function plannedChangeMessage(change: PlannedChange): MessageInitShape<typeof PlannedChangeSchema> {
  const { address, resourceType, actions, reason, before, after } = change;
  return {
    address,
    resourceType,
    actions,
    reason: reason ?? undefined,
    before: before === null ? undefined : jsonObject(before),
    after: after === null ? undefined : jsonObject(after),
  };
}

export function receiptEntryMessage(entry: ReceiptEntry): MessageInitShape<typeof ReceiptEntrySchema> {
  const { address, outcome, actions, resourceId, diagnostic, durationMs } = entry;
  return {
    address,
    outcome: ResourceOutcome[outcome],
    actions,
    resourceId: resourceId ?? undefined,
    diagnostic: diagnostic ?? undefined,
    duration: durationMs === null ? undefined : durationFromMs(durationMs),
  };
}

function timestamp(at: Date | null) {
  return at ? timestampFromDate(at) : undefined;
}
