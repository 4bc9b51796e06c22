import { assertEvent, setup, type StateValueFrom } from "xstate";
import { announcing } from "./announce.ts";
import type { IntegrationEvent } from "./integration-event.ts";

export interface QuotaColumns {
  id: string;
  tenantId: string;
  /** Empty: the whole tenant. */
  projectId: string;
  concurrentRuns: number;
  concurrentSandboxes: number;
  weight: number;
}

export type QuotaEvent =
  | { type: "set"; concurrentRuns: number; concurrentSandboxes: number; weight: number }
  | { type: "exceed"; projectId: string; holderKind: string; holderId: string; limit: string }
  | { type: "retire" };

const quotaSetup = setup({
  types: {
    context: {} as QuotaColumns,
    input: {} as QuotaColumns,
    events: {} as QuotaEvent,
    emitted: {} as IntegrationEvent,
  },
});

const announceChanged = announcing(
  "QuotaChanged",
  quotaSetup.emit(({ context }) => ({
    type: "QuotaChanged",
    quotaId: context.id,
    tenantId: context.tenantId,
    projectId: context.projectId || undefined,
    concurrentRuns: context.concurrentRuns,
    concurrentSandboxes: context.concurrentSandboxes,
  })),
);
const announceExceeded = announcing(
  "QuotaExceeded",
  quotaSetup.emit(({ context, event }) => {
    assertEvent(event, "exceed");
    const { projectId, holderKind, holderId, limit } = event;
    return { type: "QuotaExceeded", tenantId: context.tenantId, projectId, holderKind, holderId, limit };
  }),
);
const recordLimits = quotaSetup.assign(({ event }) => {
  assertEvent(event, "set");
  const { concurrentRuns, concurrentSandboxes, weight } = event;
  return { concurrentRuns, concurrentSandboxes, weight };
});

/** What a tenant, or one project of it, may use at once. Lowering it below its use evicts nobody. */
export const quota = quotaSetup.createMachine({
  id: "Quota",
  context: ({ input }) => input,
  initial: "ACTIVE",
  states: {
    ACTIVE: {
      description: "In force; an operator may change it.",
      entry: announceChanged,
      on: {
        set: { actions: [recordLimits, announceChanged] },
        exceed: { actions: announceExceeded },
        retire: "RETIRED",
      },
    },
    RETIRED: { type: "final", description: "No longer a limit." },
  },
});
export type QuotaState = StateValueFrom<typeof quota>;
