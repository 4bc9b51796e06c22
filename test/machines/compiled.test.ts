import { describe, expect, test } from "@jest/globals";
import { compiled, compiledBeginning } from "@runtime-cloud/state-machines/compiled";
import { decide, initiate } from "@runtime-cloud/state-machines/decide";
import { setup } from "xstate";
import { explore } from "./explore.ts";
import { samples } from "./samples.ts";

describe.each(samples.map((sample) => ({ name: sample.machine.id, sample })))("$name", ({ sample }) => {
  test("decides compiled as it does by itself, for every event sent to every row that can be reached", () => {
    const decideCompiled = compiled(sample.machine);
    for (const { row, event } of explore(sample)) {
      expect(decideCompiled(row, event)).toEqual(decide(sample.machine, row, event));
    }
  });

  test("begins compiled as it does by itself", () => {
    const begin = compiledBeginning(sample.machine);
    for (const row of sample.rows) expect(begin(row)).toEqual(initiate(sample.machine, row));
  });
});

test("refuses to compile what it couldn't decide", () => {
  const acting = setup({ actions: { log: () => undefined } }).createMachine({
    id: "Acting",
    initial: "ON",
    states: { ON: { on: { go: { actions: "log" } } } },
  });
  expect(() => compiled(acting)).toThrow("Acting has an action that is neither an assign nor an emit");
});

test("refuses a state that the machine doesn't have", () => {
  const [sample] = samples;
  if (!sample) throw new Error("there are samples");
  expect(() => compiled(sample.machine)({ state: "NOWHERE" }, { type: "go" })).toThrow("has no state NOWHERE");
});
