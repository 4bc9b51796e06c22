import { describe, expect, test } from "@jest/globals";
import { toCloudEvent } from "@runtime-cloud/eventing/cloud-event";
import { CREATE, lifecycleEdges, UNBORN } from "@runtime-cloud/state-machines/lifecycle-edges";
import { transitionTable } from "@runtime-cloud/state-machines/transition-table";
import { initiate } from "@runtime-cloud/state-machines/decide";
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

  test("reaches every state and takes every edge of its table, and no other", () => {
    const taken = steps.flatMap(({ row, event, decision }) =>
      decision.accepted ? [`${String(row.state)} ${event.type} ${String(decision.state)}`] : [],
    );
    const edges = services
      .flatMap(lifecycleEdges)
      .filter(({ aggregate, event }) => aggregate === machine.id && event !== CREATE)
      .map(({ fromState, event, toState }) => `${fromState} ${event} ${toState}`);
    expect([...new Set(taken)].sort()).toEqual(edges.sort());
    const reached = new Set([String(machine.config.initial), ...taken.map((edge) => edge.split(" ")[2])]);
    expect([...reached].sort()).toEqual(Object.keys(machine.states).sort());
  });

  test("refuses every event outside its table and says what would have been allowed", () => {
    for (const { row, event, decision } of steps) {
      const known = table.filter(({ from }) => from === row.state).map((way) => way.event);
      if (known.includes(event.type)) continue;
      expect(decision).toEqual({ accepted: false, because: "not-in-this-state", allowed: [...new Set(known)] });
    }
  });

  test("leaves the row as it was, whatever it decides", () => {
    for (const row of sample.rows) {
      const frozen = Object.freeze({ ...row });
      explore({ ...sample, rows: [frozen] });
      expect(frozen).toEqual(row);
    }
  });

  test("announces what its table says, in events that keep their own rules", () => {
    const creations = sample.rows.map((row) => initiate(machine, row).emitted);
    for (const message of creations.flat()) toCloudEvent(message, { ...meta, subject: identity(sample.rows[0]) });
    for (const { row, event, decision } of steps) {
      if (!decision.accepted) continue;
      const ways = table.filter(
        ({ from, event: type, to }) => from === row.state && type === event.type && to === decision.state,
      );
      const announced = decision.emitted.map((message: { type: string }) => message.type);
      expect(ways.map(({ announces }) => announces)).toContainEqual(announced);
      for (const message of decision.emitted) toCloudEvent(message, { ...meta, subject: identity(row) });
    }
  });

  test("says of every state who acts next, and never leaves a final one", () => {
    for (const [name, node] of Object.entries(machine.states)) {
      expect(node.description ?? "").toMatch(/\w.*\.$/);
      if (node.type === "final") expect(table.filter(({ from }) => from === name)).toEqual([]);
    }
  });

  test("begins on one edge", () => {
    const births = services.flatMap(lifecycleEdges).filter((edge) => edge.aggregate === machine.id && edge.fromState === UNBORN);
    expect(births).toEqual([
      { aggregate: machine.id, fromState: UNBORN, event: CREATE, toState: String(machine.config.initial) },
    ]);
  });
});

function identity(row: object | undefined) {
  const id = row && "id" in row ? String(row.id) : "id";
  return { id, tenantId: "tenant" };
}
