import { IllegalTransition } from "@runtime-cloud/service-kit/errors";
import type { Begin, Decide } from "@runtime-cloud/state-machines/compiled";
import { decide, initiate, type RowOf } from "@runtime-cloud/state-machines/decide";
import { CREATE, UNBORN } from "@runtime-cloud/state-machines/lifecycle-edges";
import type { AnyStateMachine, ContextFrom, EmittedFrom, EventFrom, StateValueFrom } from "xstate";

/** The columns by which history and events know an aggregate's row. */
export interface Identified {
  id: string;
  tenantId: string;
  /** Null or empty where the aggregate belongs to a whole tenant. */
  projectId?: string | null;
}

interface InState extends Identified {
  state: string;
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
  emitted: EmittedFrom<M>[];
}

/**
 * Asks the machine what `event` does to `row`. Throws IllegalTransition, with what would have been allowed, when the
 * machine refuses. Who asks for many rows at once gives the machine `compiled`.
 */
export function accept<M extends AnyStateMachine>(
  machine: M,
  row: InState & RowOf<M>,
  event: EventFrom<M> & { type: string },
  compiled: Decide<M> = (asked, sent) => decide(machine, asked, sent),
): Accepted<M> {
  const aggregate = machine.id;
  const { id, state: from }: InState = row;
  const { type }: { type: string } = event;
  const decision = compiled(row, event);
  if (!decision.accepted) {
    const { because: reason, allowed } = decision;
    throw new IllegalTransition({ aggregate, id, state: from, event: type, reason, allowed });
  }
  const { state, patch, emitted } = decision;
  return { aggregate, row, from, event: type, state, patch, emitted };
}

/**
 * The creation of an aggregate: `row` is what will be inserted; the machine says in which state it starts. Who begins
 * many rows at once gives the machine's beginning `compiled`.
 */
export function begin<M extends AnyStateMachine>(
  machine: M,
  row: ContextFrom<M> & Identified,
  compiled: Begin<M> = (begun) => initiate(machine, begun),
): Accepted<M> {
  const { state, emitted } = compiled(row);
  return { aggregate: machine.id, row, from: UNBORN, event: CREATE, state, patch: {}, emitted };
}
