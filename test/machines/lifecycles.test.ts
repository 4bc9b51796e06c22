import { describe, expect, test } from "@jest/globals";
import { toCloudEvent } from "@runtime-cloud/eventing/to-cloud-event";
import { decide, initiate } from "@runtime-cloud/state-machines/decide";
import type { IntegrationEvent } from "@runtime-cloud/state-machines/integration-event";
import { CREATE, lifecycleEdges, UNBORN } from "@runtime-cloud/state-machines/lifecycle-edges";
import { birthEvents, initialState, transitionTable } from "@runtime-cloud/state-machines/transition-table";
import { explore } from "./explore.ts";
import { samples } from "./samples.ts";

const services = ["iac-provisioning", "execution-capacity", "runtime-environment"] as const;
const meta = {
  id: "0190a0a0-0000-7000-8000-000000000009",
  at: new Date(0),
  aggregateVersion: 1,
  cause: { actor: "test", correlationId: "c" },
};

test("there is a sample for each of the eight aggregates", () => {
  const aggregates = services.flatMap((service) => lifecycleEdges(service).map(({ aggregate }) => aggregate));
  expect(samples.map(({ machine }) => machine.id).sort()).toEqual([...new Set(aggregates)].sort());
  expect(samples).toHaveLength(8);
});

describe.each(samples.map((sample) => ({ name: sample.machine.id, sample })))("$name", ({ sample }) => {
  const { machine } = sample;
  const steps = explore(sample);
  const table = transitionTable(machine);
  const edges = services.flatMap(lifecycleEdges).filter(({ aggregate }) => aggregate === machine.id);

  test("reaches every state and takes every edge of its table, and no other", () => {
    const taken = steps.flatMap(({ row, event, taken: way }) =>
      way ? [`${row.state} ${event.type} ${way.state}`] : [],
    );
    const known = edges
      .filter(({ fromState }) => fromState !== UNBORN)
      .map(({ fromState, event, toState }) => `${fromState} ${event} ${toState}`);
    expect([...new Set(taken)].sort()).toEqual(known.sort());
    const reached = new Set([initialState(machine), ...steps.flatMap(({ taken: way }) => way?.state ?? [])]);
    expect([...reached].sort()).toEqual(Object.keys(machine.states).sort());
  });

  test("refuses every event outside its table and says what would have been allowed", () => {
    for (const { row, event, taken, allowed } of steps) {
      const known = table.filter(({ from }) => from === row.state).map((way) => way.event);
      if (known.includes(event.type)) continue;
      expect(taken).toBeUndefined();
      expect(allowed).toEqual([...new Set(known)]);
    }
  });

  test("leaves the row as it was, whatever it decides", () => {
    for (const { row, event } of steps) {
      const frozen = Object.freeze({ ...row });
      decide(machine, frozen, event);
      expect(frozen).toEqual(row);
    }
  });

  test("announces what its table says, in events that keep their own rules", () => {
    for (const row of sample.rows) {
      const emitted: IntegrationEvent[] = initiate(machine, { ...row, state: initialState(machine) }).emitted;
      for (const message of emitted) toCloudEvent(message, { ...meta, subject: row });
    }
    for (const { row, event, taken } of steps) {
      if (!taken) continue;
      const ways = table.filter((way) => way.from === row.state && way.event === event.type && way.to === taken.state);
      expect(ways.map(({ announces }) => announces)).toContainEqual(taken.emitted.map(({ type }) => type));
      for (const message of taken.emitted) toCloudEvent(message, { ...meta, subject: row });
    }
  });

  test("says of every state who acts next, and never leaves a final one", () => {
    for (const [name, node] of Object.entries(machine.states)) {
      expect(node.description ?? "").toMatch(/\w.*\.$/);
      if (node.type === "final") expect(table.filter(({ from }) => from === name)).toEqual([]);
    }
  });

  test("begins in its initial state, or as an event leaves it that may be its first", () => {
    const births = table.filter(
      ({ from, event }) => from === initialState(machine) && birthEvents(machine).includes(event),
    );
    expect(edges.filter(({ fromState }) => fromState === UNBORN)).toEqual([
      { aggregate: machine.id, fromState: UNBORN, event: CREATE, toState: initialState(machine) },
      ...births.map(({ event, to }) => ({ aggregate: machine.id, fromState: UNBORN, event, toState: to })),
    ]);
  });
});
