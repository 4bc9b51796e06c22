import type { JsonObject } from "@bufbuild/protobuf";
import { assertEvent, setup, type StateValueFrom } from "xstate";
import { announcing } from "./announce.ts";
import type { IntegrationEvent } from "./integration-event.ts";

export interface InventoryColumns {
  id: string;
  tenantId: string;
  projectId: string;
  currentReleaseId: string | null;
  observedAt: Date | null;
  /** When the last observation stops being fresh. */
  staleAt: Date | null;
}

export type InventoryEvent =
  /** `changes` lists what moved: `{ changes: [{ path, from, to }] }`. */
  | { type: "observe"; at: Date; staleAt: Date; currentReleaseId: string | null; changes: JsonObject }
  | { type: "expire"; at: Date }
  | { type: "retire" };

const inventory = setup({
  types: {
    context: {} as InventoryColumns,
    input: {} as InventoryColumns,
    events: {} as InventoryEvent,
    emitted: {} as IntegrationEvent,
  },
  guards: {
    isStale: ({ context }, { at }: { at: Date }) => context.staleAt !== null && at >= context.staleAt,
    isNewer: ({ context }, { at }: { at: Date }) => context.observedAt === null || at >= context.observedAt,
  },
});

const recordObservation = inventory.assign(({ event }) => {
  assertEvent(event, "observe");
  return { observedAt: event.at, staleAt: event.staleAt, currentReleaseId: event.currentReleaseId };
});
const clearDeadline = inventory.assign({ staleAt: null });
const announce = (stale: boolean) =>
  announcing(
    "ObservedStateChanged",
    inventory.emit(({ context, event }) => ({
      type: "ObservedStateChanged",
      environmentId: context.id,
      tenantId: context.tenantId,
      projectId: context.projectId,
      currentReleaseId: context.currentReleaseId ?? undefined,
      changes: event.type === "observe" ? event.changes : { changes: [] },
      stale,
    })),
  );
const observe = {
  guard: { type: "isNewer" as const, params: ({ event }: { event: { at: Date } }) => event },
  actions: [recordObservation, announce(false)],
};

/** What is really there in one environment. An observation that changes nothing is no transition. */
export const runtimeInventory = inventory.createMachine({
  id: "RuntimeInventory",
  context: ({ input }) => input,
  initial: "UNOBSERVED",
  states: {
    UNOBSERVED: {
      description: "Known and never seen; an observer looks.",
      on: { observe: { ...observe, target: "FRESH" }, retire: "RETIRED" },
    },
    FRESH: {
      description: "Seen lately; the next observation is due on its interval.",
      on: {
        observe,
        expire: {
          guard: { type: "isStale", params: ({ event }) => event },
          target: "STALE",
          actions: [clearDeadline, announce(true)],
        },
        retire: { target: "RETIRED", actions: clearDeadline },
      },
    },
    STALE: {
      description: "Not seen for too long; an operator finds out why.",
      on: { observe: { ...observe, target: "FRESH" }, retire: "RETIRED" },
    },
    RETIRED: { type: "final", description: "No longer observed." },
  },
});
export type InventoryState = StateValueFrom<typeof runtimeInventory>;
