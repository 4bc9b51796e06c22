import type { AnyStateMachine, AnyStateNode } from "xstate";
import { announcedBy } from "./announce.ts";

export interface TableRow {
  from: string;
  event: string;
  /** Empty: always. */
  guard: string;
  to: string;
  announces: string[];
}

/** Every way out of every state, in the machine's order; the first whose guard holds is taken. */
export function transitionTable(machine: AnyStateMachine): TableRow[] {
  return Object.entries(machine.states).flatMap(([from, node]) =>
    [...node.transitions.values()].flat().map((way) => {
      const target: AnyStateNode | undefined = way.target?.[0];
      const entered = target && target.key !== from ? target.entry : [];
      return {
        from,
        event: way.eventType,
        guard: guardName(way.guard),
        to: target?.key ?? from,
        announces: announcements([...way.actions, ...entered]),
      };
    }),
  );
}

/** What creating a row announces. */
export function announcedAtCreation(machine: AnyStateMachine): string[] {
  return announcements(machine.states[initialState(machine)]?.entry ?? []);
}

export function initialState(machine: AnyStateMachine): string {
  return machine.root.initial.target[0]?.key ?? "";
}

/**
 * Events that may be the first of a row, before it is ever saved in its initial state: the machine's `meta.bornBy`. The
 * row is then saved as the event leaves it.
 */
export function birthEvents(machine: AnyStateMachine): string[] {
  const meta: unknown = machine.root.meta;
  if (typeof meta !== "object" || meta === null || !("bornBy" in meta) || !Array.isArray(meta.bornBy)) return [];
  return meta.bornBy.map(String);
}

function announcements(actions: readonly unknown[]): string[] {
  return actions.flatMap((action) => announcedBy(action) ?? []);
}

function guardName(guard: unknown): string {
  if (typeof guard === "string") return guard;
  return typeof guard === "object" && guard !== null && "type" in guard ? String(guard.type) : "";
}
