import { PoolKind, PoolState as PoolStateCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { assertEvent, setup, type StateValueFrom } from "xstate";
import { announcing } from "./announce.ts";
import type { EnumName } from "./enum-name.ts";
import type { IntegrationEvent } from "./integration-event.ts";

type PoolStateName = EnumName<typeof PoolStateCode>;

export interface PoolColumns {
  id: string;
  tenantId: string;
  kind: EnumName<typeof PoolKind>;
  state: PoolStateName;
  currentSize: number;
  desiredSize: number;
  generation: number;
  used: number;
  drainDeadline: Date | null;
  resumeAt: Date | null;
  note: string | null;
}

export type PoolEvent =
  /** A size that takes effect at once. */
  | { type: "resize"; size: number }
  /** A size that somebody else has to provision first. */
  | { type: "requestSize"; size: number }
  | { type: "provision"; size: number; generation: number }
  | { type: "failProvisioning"; reason: string; generation: number }
  | { type: "cordon"; note: string | null; resumeAt: Date | null }
  | { type: "uncordon" }
  | { type: "drain"; deadline: Date; note: string | null }
  | { type: "empty" }
  | { type: "retire" };

const pool = setup({
  types: {
    context: {} as PoolColumns,
    input: {} as PoolColumns,
    events: {} as PoolEvent,
    emitted: {} as IntegrationEvent,
  },
  guards: {
    isWantedGeneration: ({ context }, { generation }: { generation: number }) => generation === context.generation,
    isUnused: ({ context }) => context.used === 0,
  },
});

const announceState = (to: PoolStateName) =>
  announcing(
    "WorkerPoolStateChanged",
    pool.emit(({ context }) => ({
      type: "WorkerPoolStateChanged",
      poolId: context.id,
      tenantId: context.tenantId,
      kind: PoolKind[context.kind],
      fromState: PoolStateCode[context.state],
      toState: PoolStateCode[to],
      currentSize: context.currentSize,
    })),
  );
const recordSize = pool.assign(({ context, event }) => {
  assertEvent(event, ["resize", "provision"]);
  return {
    currentSize: event.size,
    desiredSize: event.size,
    generation: event.type === "resize" ? context.generation + 1 : context.generation,
    note: null,
  };
});
const recordWish = pool.assign(({ context, event }) => {
  assertEvent(event, "requestSize");
  return { desiredSize: event.size, generation: context.generation + 1, note: null };
});
const recordFailure = pool.assign(({ event }) => {
  assertEvent(event, "failProvisioning");
  return { note: event.reason };
});
const recordNote = pool.assign(({ event }) => {
  assertEvent(event, ["cordon", "drain"]);
  return { note: event.note };
});
const recordPause = pool.assign({ resumeAt: ({ event }) => (event.type === "cordon" ? event.resumeAt : null) });
const recordDeadline = pool.assign({
  drainDeadline: ({ event }) => (event.type === "drain" ? event.deadline : null),
  resumeAt: null,
});
const clearNote = pool.assign({ note: null, drainDeadline: null, resumeAt: null });

const wanted = {
  type: "isWantedGeneration" as const,
  params: ({ event }: { event: { generation: number } }) => event,
};
const sizing = (state: PoolStateName) => ({
  resize: { actions: [recordSize, announceState(state)] },
  requestSize: { actions: recordWish },
  provision: { guard: wanted, actions: [recordSize, announceState(state)] },
  failProvisioning: { guard: wanted, actions: recordFailure },
});
const drain = { target: "DRAINING" as const, actions: [recordNote, recordDeadline, announceState("DRAINING")] };

/** Interchangeable slots of one kind. "Full" and "over-committed" are derived, never states. */
export const workerPool = pool.createMachine({
  id: "WorkerPool",
  context: ({ input }) => input,
  initial: "PROVISIONING",
  states: {
    PROVISIONING: {
      description: "Exists without slots; whoever provisions its size has the next action.",
      entry: announceState("PROVISIONING"),
      on: {
        resize: { target: "ACTIVE", actions: [recordSize, announceState("ACTIVE")] },
        requestSize: { actions: recordWish },
        provision: { guard: wanted, target: "ACTIVE", actions: [recordSize, announceState("ACTIVE")] },
        failProvisioning: { guard: wanted, actions: recordFailure },
        drain,
      },
    },
    ACTIVE: {
      description: "Grants leases to holders.",
      on: {
        ...sizing("ACTIVE"),
        cordon: { target: "CORDONED", actions: [recordNote, recordPause, announceState("CORDONED")] },
        drain,
      },
    },
    CORDONED: {
      description:
        "Grants nothing; leases go on and may be renewed until it is uncordoned, by an operator or at its instant, or drained.",
      on: {
        ...sizing("CORDONED"),
        cordon: { actions: [recordNote, recordPause] },
        uncordon: { target: "ACTIVE", actions: [clearNote, announceState("ACTIVE")] },
        drain,
      },
    },
    DRAINING: {
      description: "Grants nothing; the holders have until the drain deadline, which caps every renewal.",
      on: {
        drain: { actions: [recordNote, recordDeadline] },
        empty: { guard: "isUnused", target: "DRAINED", actions: announceState("DRAINED") },
        uncordon: { target: "ACTIVE", actions: [clearNote, announceState("ACTIVE")] },
      },
    },
    DRAINED: {
      description: "Empty; an operator retires it.",
      on: { retire: { target: "RETIRED", actions: announceState("RETIRED") } },
    },
    RETIRED: { type: "final", description: "Gone for good; its leases stay on record." },
  },
});
export type PoolState = StateValueFrom<typeof workerPool>;
