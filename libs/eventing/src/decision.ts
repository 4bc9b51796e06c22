import { IllegalTransition } from "@runtime-cloud/service-kit/errors";
import { decide, initiate, type RowOf } from "@runtime-cloud/state-machines/decide";
import type { IntegrationEvent } from "@runtime-cloud/state-machines/integration-event";
import { CREATE, UNBORN } from "@runtime-cloud/state-machines/lifecycle-edges";
import type { AnyEventObject, AnyStateMachine, ContextFrom, EventFrom, StateValueFrom } from "xstate";

/** The columns by which history and events know an aggregate's row. */
export interface Identified {
  id: string;
  tenantId: string;
  /** Null or empty where the aggregate belongs to a whole tenant. */
  projectId?: string | null;
}

/** A transition that its machine allows, ready for `commit`. */
export interface Accepted<M extends AnyStateMachine> {
  /** The machine's id, for example `ProvisioningRun`. */
  aggregate: string;
  row: Identified;
  /** `[*]` for a creation. */
  from: string;
  event: string;
  state: StateValueFrom<M>;
  /** The columns that the transition changed, apart from the state. */
  patch: Partial<ContextFrom<M>>;
  emitted: IntegrationEvent[];
}

/**
 * Asks the machine what `event` does to `row`. Throws IllegalTransition, with what would have been allowed, when the
 * machine refuses.
 */
export function accept<M extends AnyStateMachine>(
  machine: M,
  row: RowOf<M> & Identified,
  event: EventFrom<M>,
): Accepted<M>;
export function accept(
  machine: AnyStateMachine,
  row: RowOf<AnyStateMachine> & Identified,
  event: AnyEventObject,
): Accepted<AnyStateMachine> {
  const aggregate = machine.id;
  const from = String(row.state);
  const decision = decide(machine, row, event);
  if (!decision.accepted) {
    const { because: reason, allowed } = decision;
    throw new IllegalTransition({ aggregate, id: row.id, state: from, event: event.type, reason, allowed });
  }
  const { state, patch, emitted } = decision;
  return { aggregate, row, from, event: event.type, state, patch, emitted };
}

/** The creation of an aggregate: `row` is what will be inserted; the machine says in which state it starts. */
export function begin<M extends AnyStateMachine>(machine: M, row: ContextFrom<M> & Identified): Accepted<M>;
export function begin(
  machine: AnyStateMachine,
  row: ContextFrom<AnyStateMachine> & Identified,
): Accepted<AnyStateMachine> {
  const { state, emitted } = initiate(machine, row);
  return { aggregate: machine.id, row, from: UNBORN, event: CREATE, state, patch: {}, emitted };
}
