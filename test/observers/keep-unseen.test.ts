import { expect, test } from "@jest/globals";
import { keepUnseen } from "@runtime-cloud/runtime-environment/observers/keep-unseen";
import type { ObservedComponent } from "@runtime-cloud/runtime-environment/observers/observer";

const component = (name: string, componentVersion = "1.0"): ObservedComponent => ({
  name,
  componentVersion,
  replicasDesired: 1,
  replicasReady: 1,
  health: "HEALTHY",
});
const known = [component("web"), component("api"), component("db")];

test("a whole answer replaces what was known", () => {
  const components = [component("web", "2.0")];
  expect(keepUnseen(known, { components })).toEqual(components);
});

test("components that weren't seen stay as they were known, of UNKNOWN health; those not named are gone", () => {
  const observation = { components: [component("web", "2.0")], failure: "api: connection refused", unseen: ["api"] };
  const healthReason = "the last look didn't see it";
  expect(keepUnseen(known, observation)).toEqual([
    component("web", "2.0"),
    { ...component("api"), health: "UNKNOWN", healthReason },
  ]);
});

test("when it can't tell what it missed, all that was known stays", () => {
  const observation = { components: [component("web", "2.0")], failure: "some of it is forbidden" };
  expect(keepUnseen(known, observation).map(({ name, health }) => [name, health])).toEqual([
    ["web", "HEALTHY"],
    ["api", "UNKNOWN"],
    ["db", "UNKNOWN"],
  ]);
});

test("the version of a component that was seen in part stays as it was known", () => {
  const seen = { ...component("web", ""), health: "DEGRADED" } as const;
  expect(keepUnseen(known, { components: [seen], unseen: ["web"] })).toEqual([{ ...seen, componentVersion: "1.0" }]);
  expect(keepUnseen([], { components: [seen], unseen: ["web"] })).toEqual([seen]);
  expect(keepUnseen(known, { components: [seen] })).toEqual([seen]);
});
