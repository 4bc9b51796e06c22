import { ProvisioningKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { assertEvent, setup, type StateValueFrom } from "xstate";
import { announcing } from "./announce.ts";
import type { IntegrationEvent } from "./integration-event.ts";
import type { RunColumns, RunEvent } from "./provisioning-run-columns.ts";
import { reasonOf } from "./provisioning-run-reason.ts";

const run = setup({
  types: {
    context: {} as RunColumns,
    input: {} as RunColumns,
    events: {} as RunEvent,
    emitted: {} as IntegrationEvent,
  },
  guards: {
    planOnly: ({ context }) => context.mode === "PLAN_ONLY",
    nothingToDo: (_, { noChanges }: { noChanges: boolean }) => noChanges,
    approvalDue: (_, { approvalDue }: { approvalDue: boolean }) => approvalDue,
    reviewedThisPlanBySomeoneElse: ({ context }, { by, planDigest }: { by: string; planDigest: string }) =>
      planDigest === context.planDigest && !(context.separateApprover && by === context.requestedBy),
    isDue: ({ context }, { at }: { at: Date }) => context.expiresAt !== null && at >= context.expiresAt,
    wasApplying: ({ context }) => context.applyingAt !== null,
  },
});

const recordPlan = run.assign(({ event }) => {
  assertEvent(event, "plan");
  return { ...event.plan, plannedAt: event.at, expiresAt: event.expiresAt };
});
const recordExecutor = run.assign(({ context, event }) => {
  assertEvent(event, ["start", "startApply"]);
  return { executorId: event.executorId, executorEpoch: context.executorEpoch + 1 };
});
const recordApplyStart = run.assign({
  applyingAt: ({ event }) => {
    assertEvent(event, "startApply");
    return event.at;
  },
});
const recordEnd = run.assign(({ context, event }) => ({
  endedAt: "at" in event ? event.at : context.endedAt,
  reason: reasonOf(context, event),
}));
const recordReason = run.assign({ reason: ({ context, event }) => reasonOf(context, event) });
const recordDecider = run.assign(({ context, event }) => ({
  decidedBy: "by" in event ? event.by : context.decidedBy,
  approvalId: event.type === "approve" ? (event.approvalId ?? context.approvalId) : context.approvalId,
}));

const identity = (context: RunColumns) => ({
  provisioningRunId: context.id,
  tenantId: context.tenantId,
  environmentId: context.environmentId,
  kind: ProvisioningKind[context.kind],
  promotionId: context.promotionId ?? undefined,
});
const announcePlanned = (awaitingApproval: boolean) =>
  announcing(
    "ProvisioningPlanned",
    run.emit(({ context }) => ({
      type: "ProvisioningPlanned",
      ...identity(context),
      planSummary: {
        adds: context.adds,
        changes: context.changes,
        deletes: context.deletes,
        replaces: context.replaces,
        destructive: context.destructive,
        awaitingApproval,
        approvalId: context.approvalId,
        planDigest: context.planDigest,
        expiresAt: context.expiresAt?.toISOString() ?? null,
        engine: context.engine,
      },
    })),
  );
const announceApplied = announcing(
  "ProvisioningApplied",
  run.emit(({ context, event }) => {
    assertEvent(event, ["complete", "plan"]);
    return {
      type: "ProvisioningApplied",
      ...identity(context),
      projectId: context.projectId,
      specificationVersion: context.specificationVersion,
      outputs: event.outputs,
    };
  }),
);
const announceFailed = announcing(
  "ProvisioningFailed",
  run.emit(({ context }) => ({
    type: "ProvisioningFailed",
    ...identity(context),
    reason: context.reason ?? "UNKNOWN: no reason was recorded",
  })),
);
const failing = [{ guard: "planOnly" as const, actions: recordEnd }, { actions: [recordEnd, announceFailed] }];
const failTo = <Target extends string>(target: Target) => failing.map((way) => ({ ...way, target }));
const isDue = { type: "isDue" as const, params: ({ event }: { event: { at: Date } }) => event };

/** One attempt to plan, and perhaps apply, a specification. Intent to cancel is a state, since an exit code can't tell. */
export const provisioningRun = run.createMachine({
  id: "ProvisioningRun",
  context: ({ input }) => input,
  initial: "QUEUED",
  states: {
    QUEUED: {
      description: "Waits for its turn in the environment's queue.",
      on: {
        start: { target: "PLANNING", actions: recordExecutor },
        cancel: { target: "CANCELLED", actions: [recordEnd, recordDecider] },
        supersede: failTo("SUPERSEDED"),
      },
    },
    PLANNING: {
      description: "An executor plans.",
      on: {
        plan: [
          { guard: "planOnly", target: "PLANNED", actions: [recordPlan, recordEnd, announcePlanned(false)] },
          {
            guard: { type: "nothingToDo", params: ({ event }) => event },
            target: "APPLIED",
            actions: [recordPlan, recordEnd, announcePlanned(false), announceApplied],
          },
          {
            guard: { type: "approvalDue", params: ({ event }) => event },
            target: "AWAITING_APPROVAL",
            actions: [recordPlan, announcePlanned(true)],
          },
          { target: "APPROVED", actions: [recordPlan, announcePlanned(false)] },
        ],
        fail: failTo("FAILED"),
        cancel: { target: "CANCELLING", actions: [recordReason, recordDecider] },
        loseExecutor: "QUEUED",
      },
    },
    AWAITING_APPROVAL: {
      description: "An approver decides on this plan's digest.",
      on: {
        approve: {
          guard: { type: "reviewedThisPlanBySomeoneElse", params: ({ event }) => event },
          target: "APPROVED",
          actions: recordDecider,
        },
        reject: { target: "REJECTED", actions: [recordEnd, recordDecider, announceFailed] },
        expire: { guard: isDue, target: "EXPIRED", actions: [recordEnd, announceFailed] },
        supersede: { target: "SUPERSEDED", actions: [recordEnd, announceFailed] },
        cancel: { target: "CANCELLED", actions: [recordEnd, recordDecider] },
      },
    },
    APPROVED: {
      description: "Waits for an executor, which checks once more that the plan still holds.",
      on: {
        startApply: { target: "APPLYING", actions: [recordExecutor, recordApplyStart] },
        expire: { guard: isDue, target: "EXPIRED", actions: [recordEnd, announceFailed] },
        supersede: { target: "SUPERSEDED", actions: [recordEnd, announceFailed] },
        cancel: { target: "CANCELLED", actions: [recordEnd, recordDecider] },
      },
    },
    APPLYING: {
      description: "An executor applies.",
      on: {
        complete: { target: "APPLIED", actions: [recordEnd, announceApplied] },
        completePartially: { target: "PARTIALLY_APPLIED", actions: [recordEnd, announceFailed] },
        fail: { target: "FAILED", actions: [recordEnd, announceFailed] },
        cancel: { target: "CANCELLING", actions: [recordReason, recordDecider] },
        loseExecutor: { target: "INDETERMINATE", actions: [recordEnd, announceFailed] },
      },
    },
    CANCELLING: {
      description: "The executor has been asked to stop and may still finish; then an operator may force it.",
      on: {
        stopped: { target: "CANCELLED", actions: recordEnd },
        complete: { target: "APPLIED", actions: [recordEnd, announceApplied] },
        completePartially: { target: "PARTIALLY_APPLIED", actions: [recordEnd, announceFailed] },
        fail: failTo("FAILED"),
        force: { actions: recordDecider },
        loseExecutor: [
          { guard: "wasApplying", target: "INDETERMINATE", actions: [recordEnd, announceFailed] },
          { target: "CANCELLED", actions: recordEnd },
        ],
      },
    },
    INDETERMINATE: {
      description:
        "Nobody knows what the last apply did; an operator finds out and resolves it. The environment is blocked.",
      on: { resolve: { target: "RESOLVED", actions: [recordEnd, recordDecider] } },
    },
    PLANNED: { type: "final", description: "A plan was asked for and is there to read." },
    APPLIED: { type: "final", description: "The desired state is in force." },
    PARTIALLY_APPLIED: {
      type: "final",
      description: "Some resources were applied and some were not; the receipt says which.",
    },
    FAILED: { type: "final", description: "Nothing was applied." },
    REJECTED: { type: "final", description: "An approver said no." },
    EXPIRED: { type: "final", description: "Nobody decided or applied the plan in time." },
    SUPERSEDED: { type: "final", description: "What was planned no longer holds; a newer run takes over." },
    CANCELLED: { type: "final", description: "Stopped on request." },
    RESOLVED: { type: "final", description: "An operator settled what an indeterminate apply had done." },
  },
});
export type RunState = StateValueFrom<typeof provisioningRun>;
