import { DriftKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { assertEvent, setup, type StateValueFrom } from "xstate";
import { announcing } from "./announce.ts";
import type { EnumName } from "./enum-name.ts";
import type { IntegrationEvent } from "./integration-event.ts";

export interface FindingColumns {
  id: string;
  tenantId: string;
  environmentId: string;
  kind: EnumName<typeof DriftKind>;
  resource: string;
  proposalId: string | null;
  suppressedReason: string | null;
  suppressedUntil: Date | null;
  /** The rule that silences it; null when somebody did by hand. */
  suppressionRuleId: string | null;
  resolvedAt: Date | null;
}

export type FindingEvent =
  | { type: "propose"; proposalId: string }
  | { type: "reopen" }
  | { type: "suppress"; reason: string; until: Date; ruleId: string | null }
  | { type: "unsuppress" }
  | { type: "expire"; at: Date }
  | { type: "resolve"; at: Date };

const finding = setup({
  types: {
    context: {} as FindingColumns,
    input: {} as FindingColumns,
    events: {} as FindingEvent,
    emitted: {} as IntegrationEvent,
  },
  guards: {
    isDue: ({ context }, { at }: { at: Date }) => context.suppressedUntil !== null && at >= context.suppressedUntil,
  },
});

const announceDrift = announcing(
  "RuntimeDriftDetected",
  finding.emit(({ context }) => ({
    type: "RuntimeDriftDetected",
    findingId: context.id,
    tenantId: context.tenantId,
    environmentId: context.environmentId,
    kind: DriftKind[context.kind],
    resource: context.resource,
  })),
);
const recordProposal = finding.assign({
  proposalId: ({ event }) => (event.type === "propose" ? event.proposalId : null),
});
const recordSuppression = finding.assign(({ event }) => {
  assertEvent(event, "suppress");
  return { suppressedReason: event.reason, suppressedUntil: event.until, suppressionRuleId: event.ruleId };
});
const clearSuppression = finding.assign({ suppressedReason: null, suppressedUntil: null, suppressionRuleId: null });
const recordResolution = finding.assign(({ event }) => {
  assertEvent(event, "resolve");
  return { resolvedAt: event.at };
});
const resolve = { target: "RESOLVED" as const, actions: recordResolution };

const suppress = { target: "SUPPRESSED" as const, actions: recordSuppression };

/**
 * One drifted fact. Seeing it again counts it and announces nothing. One that a rule silences from the first is born
 * suppressed.
 */
export const driftFinding = finding.createMachine({
  id: "DriftFinding",
  meta: { bornBy: ["suppress"] },
  context: ({ input }) => input,
  initial: "OPEN",
  states: {
    OPEN: {
      description: "Differs from what was applied; an operator proposes a reconciliation or suppresses it.",
      entry: announceDrift,
      on: {
        propose: { target: "PROPOSED", actions: recordProposal },
        suppress,
        resolve,
      },
    },
    PROPOSED: {
      description: "A proposal covers it; the operator who decides has the next action.",
      on: {
        propose: { actions: recordProposal },
        reopen: { target: "OPEN", actions: recordProposal },
        resolve,
      },
    },
    SUPPRESSED: {
      description: "Silenced for a reason until an instant, by hand or by a rule.",
      on: {
        suppress: { actions: recordSuppression },
        unsuppress: { target: "OPEN", actions: clearSuppression },
        expire: { guard: { type: "isDue", params: ({ event }) => event }, target: "OPEN", actions: clearSuppression },
        resolve,
      },
    },
    RESOLVED: { type: "final", description: "No longer differs. The same drift later is a new finding." },
  },
});
export type FindingState = StateValueFrom<typeof driftFinding>;
