import { decide, type Decision, type RowOf } from "@runtime-cloud/state-machines/decide";
import type { AnyEventObject, AnyStateMachine } from "xstate";

/** A machine with enough rows and events to take each of its transitions. */
export interface Sample {
  machine: AnyStateMachine;
  /** New rows that differ in what guards read. */
  rows: object[];
  events: AnyEventObject[];
}

export interface Step {
  row: RowOf<AnyStateMachine>;
  event: AnyEventObject;
  decision: Decision<AnyStateMachine>;
}

/** Every event sent to every row that can be reached, as the machine decided it. */
export function explore({ machine, rows, events }: Sample): Step[] {
  const open = rows.map((row) => ({ ...row, state: machine.config.initial }));
  const seen = new Set<string>();
  const steps: Step[] = [];
  for (let row = open.shift(); row !== undefined; row = open.shift()) {
    const key = JSON.stringify(row, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
    if (seen.has(key)) continue;
    seen.add(key);
    for (const event of events) {
      const decision = decide(machine, row, event);
      steps.push({ row, event, decision });
      if (decision.accepted && seen.size < MAX_ROWS) open.push({ ...row, ...decision.patch, state: decision.state });
    }
  }
  return steps;
}

/** Rows differ without end, by their counters; breadth first, every state comes long before this. */
const MAX_ROWS = 300;
