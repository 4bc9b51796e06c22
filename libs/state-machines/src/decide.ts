import {
  getNextTransitions,
  initialTransition,
  transition,
  type AnyEventObject,
  type AnyStateMachine,
  type ContextFrom,
  type EmittedFrom,
  type EventFrom,
  type StateValueFrom,
} from "xstate";

/** The columns that a machine reads, its state among them: any database row of the aggregate satisfies this. */
export type RowOf<M extends AnyStateMachine> = ContextFrom<M> & { state: StateValueFrom<M> };

export type Decision<M extends AnyStateMachine> =
  | { accepted: true; state: StateValueFrom<M>; patch: Partial<ContextFrom<M>>; emitted: EmittedFrom<M>[] }
  | { accepted: false; because: "not-in-this-state" | "guard"; allowed: string[] };

export interface Beginning<M extends AnyStateMachine> {
  state: StateValueFrom<M>;
  emitted: EmittedFrom<M>[];
}

/** What the machine makes of an event for a row: the next state, the changed columns and what to announce, or a refusal. */
export function decide<M extends AnyStateMachine>(machine: M, row: RowOf<M>, event: EventFrom<M>): Decision<M>;
export function decide(
  machine: AnyStateMachine,
  row: RowOf<AnyStateMachine>,
  event: AnyEventObject,
): Decision<AnyStateMachine> {
  const before = machine.resolveState({ value: row.state, context: row });
  if (!before.can(event)) {
    const allowed = [...new Set(getNextTransitions(before).map((next) => next.eventType))];
    return { accepted: false, because: allowed.includes(event.type) ? "guard" : "not-in-this-state", allowed };
  }
  const [after, actions] = transition(machine, before, event);
  return {
    accepted: true,
    state: after.value,
    patch: changes(before.context, after.context),
    emitted: emittedBy(actions),
  };
}

/** How a new row begins: the machine's first state and what entering it announces. */
export function initiate<M extends AnyStateMachine>(machine: M, row: ContextFrom<M>): Beginning<M>;
export function initiate(machine: AnyStateMachine, row: ContextFrom<AnyStateMachine>): Beginning<AnyStateMachine> {
  const [first, actions] = initialTransition(machine, row);
  return { state: first.value, emitted: emittedBy(actions) };
}

function changes<C extends object>(before: C, after: C): Partial<C> {
  const patch: Partial<C> = {};
  for (const key in after) if (after[key] !== before[key]) patch[key] = after[key];
  return patch;
}

function emittedBy<E>(actions: readonly Action[]): E[] {
  // XState types an executable action's params as unknown; those of xstate.emit hold the event.
  const isEmit = (action: Action): action is Action & { params: { event: E } } => action.type === "xstate.emit";
  return actions.filter(isEmit).map((action) => action.params.event);
}

interface Action {
  type: string;
  params?: unknown;
}
