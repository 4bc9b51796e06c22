import type { ChangeAction, EngineEvent, PlannedChange } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import { foldReceipt, plannedReceipt } from "@runtime-cloud/iac-provisioning/engines/receipt";
import { expect, test } from "@jest/globals";

const started = (action: ChangeAction): EngineEvent => ({ type: "resource-started", address: "a", action });
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
  const [entry] = events.reduce(foldReceipt, plannedReceipt([change("a", actions)]));
  expect(entry?.outcome).toBe(outcome);
});

test("an entry keeps its id, its steps, their time together and the error that names it", () => {
  const diagnostic = { severity: "error" as const, summary: "no", detail: "", address: "a" };
  const receipt = [
    started("delete"),
    applied("delete"),
    started("create"),
    failed("create"),
    { type: "diagnostic" as const, diagnostic },
  ].reduce(foldReceipt, plannedReceipt([change("a", ["delete", "create"]), change("b", ["create"])]));
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

function change(address: string, actions: ChangeAction[]): PlannedChange {
  return { address, resourceType: "t", actions, before: null, after: null };
}
