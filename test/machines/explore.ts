import { decide, type Decision } from "@runtime-cloud/state-machines/decide";
import type { IntegrationEvent } from "@runtime-cloud/state-machines/integration-event";
import { initialState } from "@runtime-cloud/state-machines/transition-table";
import type { AnyEventObject, AnyStateMachine } from "xstate";

/** A machine with enough rows and events to take each of its transitions. */
export interface Sample {
  machine: AnyStateMachine;
  /** New rows that differ in what guards read. */
  rows: SampleColumns[];
  events: AnyEventObject[];
}

export type SampleColumns = Readonly<Record<string, unknown>> & { id: string; tenantId: string };

export interface Step {
  row: SampleColumns & { state: string };
  event: AnyEventObject;
  /** Undefined when the machine refused. */
  taken: { state: string; emitted: IntegrationEvent[] } | undefined;
  allowed: string[];
}

/** Every event sent to every row that can be reached, as the machine decided it. */
export function explore({ machine, rows, events }: Sample): Step[] {
  const open = rows.map((row) => ({ ...row, state: initialState(machine) }));
  const seen = new Set<string>();
  const steps: Step[] = [];
  for (let row = open.shift(); row !== undefined; row = open.shift()) {
    const key = JSON.stringify(row, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
    if (seen.has(key)) continue;
    seen.add(key);
    for (const event of events) {
      const decision: Decision<AnyStateMachine> = decide(machine, row, event);
      if (!decision.accepted) {
        steps.push({ row, event, taken: undefined, allowed: decision.allowed });
        continue;
      }
      const state = String(decision.state);
      const patch: Record<string, unknown> = { ...decision.patch };
      const emitted: IntegrationEvent[] = decision.emitted;
      steps.push({ row, event, taken: { state, emitted }, allowed: [] });
      if (seen.size < MAX_ROWS) open.push({ ...row, ...patch, state });
    }
  }
  return steps;
}

/** Rows differ without end, by their counters; breadth first, every state comes long before this. */
const MAX_ROWS = 300;
