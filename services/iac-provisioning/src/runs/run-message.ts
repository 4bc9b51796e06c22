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
import type { PlannedChange, ReceiptEntry } from "../../generated/prisma/client.ts";
import { jsonObject } from "../json/json-object.ts";
import { isHeld } from "./run-end.ts";
import type { Run } from "./run-row.ts";

export type RunWithProgram = Run & { specification: { programVersion: string } };

/** `queuePosition` is the run's place in its environment's queue, where it has one and it was looked for. */
export function runMessage(
  run: RunWithProgram,
  { queuePosition }: { queuePosition?: number | undefined } = {},
): MessageInitShape<typeof ProvisioningRunSchema> {
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
    executor: executor(run),
    queuePosition,
    sensitiveOutputs: run.sensitiveOutputs,
  };
}

/** Whoever held the run last stays in its row; only a run that is being worked on has an executor. */
function executor({ state, executorId, executorEpoch, executorUntil }: Run) {
  if (!isHeld(state) || executorId === null || executorUntil === null) return undefined;
  return { executorId, epoch: executorEpoch, leaseUntil: timestampFromDate(executorUntil) };
}

export function planSummary({ adds, changes, deletes, replaces, destructive }: Run) {
  return { adds, changes, deletes, replaces, destructive };
}

export function plannedChangeMessage(change: PlannedChange): MessageInitShape<typeof PlannedChangeSchema> {
  const { address, resourceType, actions, reason, before, after, previousAddress, importId, deposed } = change;
  return {
    address,
    resourceType,
    actions,
    reason: reason ?? undefined,
    previousAddress: previousAddress ?? undefined,
    importId: importId ?? undefined,
    deposed: deposed ?? undefined,
    before: before === null ? undefined : jsonObject(before),
    after: after === null ? undefined : jsonObject(after),
  };
}

export function receiptEntryMessage(entry: ReceiptEntry): MessageInitShape<typeof ReceiptEntrySchema> {
  const { address, resourceType, outcome, actions, resourceId, diagnostic, durationMs } = entry;
  return {
    address,
    resourceType,
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
