import type { AnyEventObject, AnyStateMachine, AnyStateNode, ContextFrom, EventFrom } from "xstate";
import type { Beginning, Decision, RowOf } from "./decide.ts";

/** Decides as `decide` does for one machine, at a small part of its price. */
export type Decide<M extends AnyStateMachine> = (row: RowOf<M>, event: EventFrom<M>) => Decision<M>;

/**
 * Compiles a flat machine of assigns, emits and named guards into a lookup by state and event, for a path that can't
 * afford XState's own step. It calls the machine's own guards and actions; a model-based test holds the two equal. Throws
 * for a machine that does anything else.
 */
export function compiled<M extends AnyStateMachine>(machine: M): Decide<M>;
export function compiled(machine: AnyStateMachine): Decide<AnyStateMachine> {
  const table = new Map(Object.entries(machine.states).map(([name, node]) => [name, waysOf(machine, name, node)]));

  return (row: Columns & { state: string }, event: AnyEventObject) => {
    const ways = table.get(row.state);
    if (!ways) throw new Error(`${machine.id} has no state ${row.state}`);
    const candidates = ways.get(event.type);
    const way = candidates?.find(({ guard }) => guard(row, event));
    if (!way)
      return { accepted: false, because: candidates ? "guard" : "not-in-this-state", allowed: [...ways.keys()] };
    const patch: Columns = {};
    const emitted: AnyEventObject[] = [];
    let context: Columns = row;
    for (const act of way.actions) {
      const done = act(context, event);
      if (done.kind === "emits") emitted.push(done.event);
      else {
        context = { ...context, ...done.changes };
        Object.assign(patch, changed(row, done.changes));
      }
    }
    return { accepted: true, state: way.target, patch, emitted };
  };
}

/** Begins a row as `initiate` does, at a small part of its price. */
export type Begin<M extends AnyStateMachine> = (row: ContextFrom<M>) => Beginning<M>;

/** Compiles how rows of a machine begin, whose first state announces things at most. Throws for any other. */
export function compiledBeginning<M extends AnyStateMachine>(machine: M): Begin<M>;
export function compiledBeginning(machine: AnyStateMachine): Begin<AnyStateMachine> {
  const first: AnyStateNode | undefined = machine.root.initial.target[0];
  if (!first) throw new Error(`${machine.id} has no first state`);
  const entering = first.entry.map((action) => actOf(machine, action));
  return (row: Columns) => {
    const emitted = entering.map((act) => {
      const done = act(row, { type: "xstate.init" });
      if (done.kind === "emits") return done.event;
      throw new Error(`${machine.id} changes columns when it begins`);
    });
    return { state: first.key, emitted };
  };
}

type Columns = Record<string, unknown>;

interface Way {
  target: string;
  guard: (context: Columns, event: AnyEventObject) => boolean;
  actions: readonly Act[];
}

type Act = (context: Columns, event: AnyEventObject) => Assigns | Emits;

interface Assigns {
  kind: "assigns";
  changes: Columns;
}

interface Emits {
  kind: "emits";
  event: AnyEventObject;
}

function waysOf(machine: AnyStateMachine, name: string, node: AnyStateNode): Map<string, Way[]> {
  const ways = new Map<string, Way[]>();
  for (const transition of [...node.transitions.values()].flat()) {
    const target: AnyStateNode | undefined = transition.target?.[0];
    const entry: readonly unknown[] = target && target.key !== name ? target.entry : [];
    const way: Way = {
      target: target?.key ?? name,
      guard: guardOf(machine, transition.guard),
      actions: [...transition.actions, ...entry].map((action) => actOf(machine, action)),
    };
    const type = String(transition.eventType);
    ways.set(type, [...(ways.get(type) ?? []), way]);
  }
  return ways;
}

function guardOf(machine: AnyStateMachine, guard: unknown): Way["guard"] {
  if (guard === undefined) return () => true;
  const { type, params } = typeof guard === "string" ? { type: guard, params: undefined } : described(machine, guard);
  const holds: unknown = machine.implementations.guards[type];
  if (!isCallable(holds)) throw new Error(`${machine.id} has no guard ${type}`);
  return (context, event) => Boolean(holds({ context, event }, evaluated(params, context, event)));
}

function described(machine: AnyStateMachine, guard: unknown): { type: string; params: unknown } {
  if (typeof guard === "object" && guard !== null && "type" in guard && typeof guard.type === "string") {
    return { type: guard.type, params: "params" in guard ? guard.params : undefined };
  }
  throw new Error(`${machine.id} has a guard that isn't named`);
}

function actOf(machine: AnyStateMachine, action: unknown): Act {
  if (typeof action === "function" && "assignment" in action) return assigning(action.assignment);
  if (typeof action === "function" && "event" in action) {
    const { event: announced } = action;
    return (context, event) => ({ kind: "emits", event: eventOf(evaluated(announced, context, event)) });
  }
  throw new Error(`${machine.id} has an action that is neither an assign nor an emit`);
}

function assigning(assignment: unknown): Act {
  if (isCallable(assignment)) {
    return (context, event) => ({ kind: "assigns", changes: columnsOf(assignment({ context, event })) });
  }
  const columns = Object.entries(columnsOf(assignment));
  return (context, event) => {
    const changes = Object.fromEntries(columns.map(([key, value]) => [key, evaluated(value, context, event)]));
    return { kind: "assigns", changes };
  };
}

function evaluated(value: unknown, context: Columns, event: AnyEventObject): unknown {
  return isCallable(value) ? value({ context, event }) : value;
}

function isCallable(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === "function";
}

function columnsOf(value: unknown): Columns {
  if (typeof value === "object" && value !== null) return { ...value };
  throw new Error("an assignment gave no columns");
}

function eventOf(value: unknown): AnyEventObject {
  if (typeof value === "object" && value !== null && "type" in value && typeof value.type === "string") {
    return { ...value, type: value.type };
  }
  throw new Error("an emit gave no event");
}

function changed(before: Columns, changes: Columns): Columns {
  return Object.fromEntries(Object.entries(changes).filter(([key, value]) => value !== before[key]));
}
