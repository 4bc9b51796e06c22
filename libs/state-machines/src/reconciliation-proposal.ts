import {
  ProposalState as ProposalStateCode,
  type ReconciliationDirection,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { assertEvent, setup, type StateValueFrom } from "xstate";
import { announcing } from "./announce.ts";
import type { EnumName } from "./enum-name.ts";
import type { IntegrationEvent } from "./integration-event.ts";

export interface ProposalColumns {
  id: string;
  tenantId: string;
  environmentId: string;
  direction: EnumName<typeof ReconciliationDirection>;
  destructive: boolean;
  digest: string;
  expiresAt: Date;
  provisioningRunId: string | null;
  decidedBy: string | null;
  decidedAt: Date | null;
  reason: string | null;
  previewState: "PENDING" | "READY" | "FAILED";
  planDigest: string | null;
  /** The version that was declared to adopt what was observed. */
  adoptedId: string | null;
  supersededBy: string | null;
}

export type ProposalEvent =
  | { type: "preview"; planDigest: string; destructive: boolean; digest: string }
  | { type: "failPreview" }
  | { type: "accept"; at: Date; by: string; digest: string; reason: string | null }
  | { type: "reject"; at: Date; by: string; digest: string; reason: string | null }
  | { type: "adopt"; adoptedId: string }
  | { type: "planRun"; provisioningRunId: string }
  | { type: "complete" }
  | { type: "fail"; reason: string }
  | { type: "expire"; at: Date }
  | { type: "supersede"; by?: string }
  | { type: "lapse" };

const proposal = setup({
  types: {
    context: {} as ProposalColumns,
    input: {} as ProposalColumns,
    events: {} as ProposalEvent,
    emitted: {} as IntegrationEvent,
  },
  guards: {
    reviewedThisProposal: ({ context }, { at, digest }: { at: Date; digest: string }) =>
      digest === context.digest && at < context.expiresAt,
    isDue: ({ context }, { at }: { at: Date }) => at >= context.expiresAt,
    awaitsPreview: ({ context }) => context.previewState === "PENDING",
    adopts: ({ context }) => context.direction === "ADOPT_OBSERVED" && context.adoptedId === null,
    hasWhatItRuns: ({ context }) => context.direction !== "ADOPT_OBSERVED" || context.adoptedId !== null,
  },
});

const announceProposed = announcing(
  "ReconciliationProposed",
  proposal.emit(({ context }) => ({
    type: "ReconciliationProposed",
    proposalId: context.id,
    tenantId: context.tenantId,
    environmentId: context.environmentId,
    direction: context.direction,
    destructive: context.destructive,
  })),
);
const announceDecided = (state: "ACCEPTED" | "REJECTED") =>
  announcing(
    "ReconciliationDecided",
    proposal.emit(({ context }) => ({
      type: "ReconciliationDecided",
      proposalId: context.id,
      tenantId: context.tenantId,
      environmentId: context.environmentId,
      state: ProposalStateCode[state],
      provisioningRunId: context.provisioningRunId ?? undefined,
    })),
  );
const recordDecision = proposal.assign(({ event }) => {
  assertEvent(event, ["accept", "reject"]);
  return { decidedBy: event.by, decidedAt: event.at, reason: event.reason };
});
const recordPreview = proposal.assign(({ event }) => {
  assertEvent(event, "preview");
  const { planDigest, destructive, digest } = event;
  return { previewState: "READY" as const, planDigest, destructive, digest };
});
const recordPreviewFailure = proposal.assign({ previewState: "FAILED" as const });
const recordAdoption = proposal.assign(({ event }) => {
  assertEvent(event, "adopt");
  return { adoptedId: event.adoptedId };
});
const recordSuccessor = proposal.assign(({ event }) => {
  assertEvent(event, "supersede");
  return { supersededBy: event.by ?? null };
});
const recordRun = proposal.assign(({ event }) => {
  assertEvent(event, "planRun");
  return { provisioningRunId: event.provisioningRunId };
});
const recordFailure = proposal.assign(({ event }) => {
  assertEvent(event, "fail");
  return { reason: event.reason };
});
const reviewed = {
  type: "reviewedThisProposal" as const,
  params: ({ event }: { event: { at: Date; digest: string } }) => event,
};

/** A reviewable way to close findings. Nothing is applied without a decision on its digest. */
export const reconciliationProposal = proposal.createMachine({
  id: "ReconciliationProposal",
  context: ({ input }) => input,
  initial: "PROPOSED",
  states: {
    PROPOSED: {
      description: "An operator decides on its digest, which moves once when the preview's plan is there.",
      entry: announceProposed,
      on: {
        preview: { guard: "awaitsPreview", actions: recordPreview },
        failPreview: { guard: "awaitsPreview", actions: recordPreviewFailure },
        accept: { guard: reviewed, target: "ACCEPTING", actions: recordDecision },
        reject: { guard: reviewed, target: "REJECTED", actions: [recordDecision, announceDecided("REJECTED")] },
        expire: { guard: { type: "isDue", params: ({ event }) => event }, target: "EXPIRED" },
        supersede: { target: "SUPERSEDED", actions: recordSuccessor },
        lapse: "OBSOLETE",
      },
    },
    ACCEPTING: {
      description:
        "Accepted; the service asks IaCProvisioningService for the version to adopt, if any, and the run until it answers.",
      on: {
        adopt: { guard: "adopts", actions: recordAdoption },
        planRun: { guard: "hasWhatItRuns", target: "ACCEPTED", actions: [recordRun, announceDecided("ACCEPTED")] },
        fail: { target: "FAILED", actions: recordFailure },
      },
    },
    ACCEPTED: {
      description: "Its run is planned; the run's end completes or fails it.",
      on: { complete: "COMPLETED", fail: { target: "FAILED", actions: recordFailure } },
    },
    COMPLETED: {
      type: "final",
      description: "Its run was applied: the next look resolves its findings, or opens again what still differs.",
    },
    FAILED: { type: "final", description: "Its run could not be planned or applied." },
    REJECTED: { type: "final", description: "An operator said no." },
    EXPIRED: { type: "final", description: "Nobody decided in time." },
    SUPERSEDED: { type: "final", description: "Newer drift made a newer proposal." },
    OBSOLETE: { type: "final", description: "The drift vanished before anyone decided." },
  },
});
export type ProposalState = StateValueFrom<typeof reconciliationProposal>;
