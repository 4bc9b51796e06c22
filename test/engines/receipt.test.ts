import type { ChangeAction, EngineEvent, PlannedChange } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import { openReceipt, receiptOf } from "@runtime-cloud/iac-provisioning/engines/receipt";
import { expect, test } from "@jest/globals";

const started = (action: ChangeAction, address = "a"): EngineEvent => ({ type: "resource-started", address, action });
const applied = (action: ChangeAction): EngineEvent => ({
  type: "resource-applied",
  address: "a",
  action,
  id: "i-1",
  durationMs: 40,
});
const failed = (action: ChangeAction): EngineEvent => ({
  type: "resource-failed",
  address: "a",
  action,
  durationMs: 2,
});

test.each<[string, ChangeAction[], EngineEvent[], string]>([
  ["nothing to do", ["no-op"], [], "NO_OP"],
  ["never reached", ["create"], [], "NOT_ATTEMPTED"],
  ["begun", ["create"], [started("create")], "INDETERMINATE"],
  ["done", ["create"], [started("create"), applied("create")], "APPLIED"],
  ["failed", ["create"], [started("create"), failed("create")], "FAILED"],
  ["its delete failed", ["delete", "create"], [started("delete"), failed("delete")], "FAILED"],
  ["deleted", ["delete", "create"], [started("delete"), applied("delete")], "DELETED_NOT_RECREATED"],
  [
    "deleted, its create failed",
    ["delete", "create"],
    [started("delete"), applied("delete"), started("create"), failed("create")],
    "DELETED_NOT_RECREATED",
  ],
  [
    "deleted, its create under way",
    ["delete", "create"],
    [started("delete"), applied("delete"), started("create")],
    "INDETERMINATE",
  ],
  [
    "replaced",
    ["delete", "create"],
    [started("delete"), applied("delete"), started("create"), applied("create")],
    "APPLIED",
  ],
  ["created, the old one still there", ["create", "delete"], [started("create"), applied("create")], "FAILED"],
])("a resource that is %s", (_, actions, events, outcome) => {
  const [entry] = receiptOf([change("a", actions)], events);
  expect(entry?.outcome).toBe(outcome);
});

test("an entry keeps its id, its steps, their time together and the error that names it", () => {
  const diagnostic = { severity: "error" as const, summary: "no", detail: "", address: "a" };
  const receipt = receiptOf(
    [change("a", ["delete", "create"]), change("b", ["create"])],
    [
      started("delete"),
      applied("delete"),
      started("create"),
      failed("create"),
      { type: "diagnostic" as const, diagnostic },
    ],
  );
  expect(receipt).toEqual([
    {
      address: "a",
      resourceType: "t",
      actions: ["delete", "create"],
      outcome: "DELETED_NOT_RECREATED",
      done: ["delete"],
      id: "i-1",
      durationMs: 42,
      diagnostic,
    },
    { address: "b", resourceType: "t", actions: ["create"], outcome: "NOT_ATTEMPTED", done: [], durationMs: 0 },
  ]);
});

test("a resource that is forgotten is APPLIED once all is, for the engine says nothing of it", () => {
  const receipt = openReceipt([change("a", ["forget"]), change("b", ["create"]), change("c", ["no-op"])]);
  expect(receipt.complete()).toEqual([0]);
  expect(receipt.entries().map(({ outcome }) => outcome)).toEqual(["APPLIED", "NOT_ATTEMPTED", "NO_OP"]);
  expect(receipt.complete()).toEqual([]);
});

test.each<[string, PlannedChange[], EngineEvent[], string[]]>([
  [
    "the deposed object's delete is not the live one's update",
    [change("a", ["update"]), change("a", ["delete"])],
    [started("delete"), applied("delete")],
    ["NOT_ATTEMPTED", "APPLIED"],
  ],
  [
    "two deletes of one address are one of each object",
    [change("a", ["delete", "create"]), change("a", ["delete"])],
    [started("delete"), started("delete"), applied("delete"), applied("delete"), started("create")],
    ["INDETERMINATE", "APPLIED"],
  ],
  [
    "the failed one is the one that began",
    [change("a", ["no-op"]), change("a", ["delete"])],
    [started("delete"), failed("delete")],
    ["NO_OP", "FAILED"],
  ],
])("of two objects with one address, %s", (_, changes, events, expected) => {
  expect(receiptOf(changes, events).map(({ outcome }) => outcome)).toEqual(expected);
});

test("tells which entry an event changed, and nothing for one that changes none", () => {
  const receipt = openReceipt([change("b", ["create"]), change("a", ["create"])]);
  expect(receipt.take(started("create"))).toBe(1);
  expect(receipt.take(started("create", "unplanned"))).toBeUndefined();
  expect(receipt.take({ type: "log", level: "info", line: "a" })).toBeUndefined();
});

test("an event costs no more in a plan of 15,000 resources than in one of 15", () => {
  const perEvent = (count: number, rounds: number) => {
    const addresses = Array.from({ length: count }, (_, index) => `a[${index}]`);
    const receipt = openReceipt(addresses.map((address) => change(address, ["create"])));
    const from = performance.now();
    for (let round = 0; round < rounds; round += 1) {
      for (const address of addresses) receipt.take(started("create", address));
    }
    return (performance.now() - from) / (count * rounds);
  };
  perEvent(15, 1_000);
  // A scan of the whole plan would cost a thousand times as much.
  expect(perEvent(15_000, 1)).toBeLessThan(perEvent(15, 1_000) * 100);
});

function change(address: string, actions: ChangeAction[]): PlannedChange {
  return { address, resourceType: "t", actions, before: null, after: null };
}
