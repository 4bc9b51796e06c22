import type { ReceiptEntry } from "../../services/iac-provisioning/generated/prisma/client.ts";
import { type StateInventory, stateInventory } from "@runtime-cloud/iac-provisioning/engines/state-inventory";
import { recoveryProblem } from "@runtime-cloud/iac-provisioning/recovery/recovery-problem";
import { expect, test } from "@jest/globals";

const resource = (name: string, instances: object[], more: object = {}) => ({
  mode: "managed",
  type: "aws_instance",
  name,
  instances,
  ...more,
});

test("reads the addresses of a state: modules, keys, numbers, and no data, deposed object or output", () => {
  const inventory = stateInventory(
    "terraform",
    JSON.stringify({
      version: 4,
      resources: [
        resource("plain", [{ attributes: { id: "i-1", arn: "arn:1", ebs: [{ id: "nested" }] } }]),
        resource("counted", [
          { index_key: 0, attributes: { id: "i-2" } },
          { index_key: 1, attributes: { id: "i-3" } },
        ]),
        resource("keyed", [{ index_key: 'a"b', attributes: { id: "i-4" } }], {
          module: 'module.net["x"].module.sub[2]',
        }),
        resource("left", [{ deposed: "1234abcd", attributes: { id: "i-5" } }]),
        resource("odd", [{ attributes: null }, {}]),
        resource("read", [{ attributes: { id: "ami" } }], { mode: "data" }),
      ],
      outputs: { id: { value: "x" } },
    }),
  );
  expect(inventory.addresses).toEqual([
    "aws_instance.plain",
    "aws_instance.counted[0]",
    "aws_instance.counted[1]",
    'module.net["x"].module.sub[2].aws_instance.keyed["a\\"b"]',
    "aws_instance.odd",
  ]);
  expect(inventory.holds("aws_instance.plain", "i-1")).toBe(true);
  expect(inventory.holds("aws_instance.plain", "arn:1")).toBe(true);
  expect(inventory.holds("aws_instance.plain", "nested")).toBe(false);
  expect(inventory.has("aws_instance.left")).toBe(false);
  expect(stateInventory("terraform", "").addresses).toEqual([]);
  const record = { format: 1, lineage: "a", serial: 1, files: { "a.yaml": "x" }, outputs: {}, secrets: [] };
  expect(stateInventory("manifests", JSON.stringify(record)).addresses).toEqual(["a.yaml"]);
});

const recorded: StateInventory = stateInventory(
  "terraform",
  JSON.stringify({ version: 4, resources: [resource("there", [{ attributes: { id: "old" } }])] }),
);
const there = "aws_instance.there";
const gone = "aws_instance.gone";

test.each<[string, string[], ReceiptEntry["outcome"], string, string | null, string | undefined]>([
  ["created, and not recorded", ["create"], "APPLIED", gone, "new", "CREATED_NOT_RECORDED"],
  ["created, and another one is recorded", ["create"], "APPLIED", there, "new", "CREATED_NOT_RECORDED"],
  ["created and recorded", ["create"], "APPLIED", there, "old", undefined],
  ["created and recorded, its id a secret", ["create"], "APPLIED", there, "a-(sensitive value)", undefined],
  ["replaced, and the old one is recorded", ["delete", "create"], "APPLIED", there, "new", "CREATED_NOT_RECORDED"],
  ["replaced by nobody knows which", ["delete", "create"], "APPLIED", there, null, "CHANGE_UNCONFIRMED"],
  ["updated", ["update"], "APPLIED", there, "old", "CHANGE_UNCONFIRMED"],
  ["deleted, and recorded", ["delete"], "APPLIED", there, null, "DELETED_STILL_RECORDED"],
  ["deleted, and no longer recorded", ["delete"], "APPLIED", gone, null, undefined],
  ["half replaced", ["delete", "create"], "DELETED_NOT_RECREATED", there, null, "DELETED_STILL_RECORDED"],
  ["created beside the old one", ["create", "delete"], "FAILED", there, "new", "CREATED_NOT_RECORDED"],
  ["not quite created", ["create"], "FAILED", gone, null, "RESULT_UNKNOWN"],
  ["being created", ["create"], "INDETERMINATE", gone, null, "RESULT_UNKNOWN"],
  ["being created, and recorded by now", ["create"], "INDETERMINATE", there, null, undefined],
  ["being deleted", ["delete"], "INDETERMINATE", there, null, "RESULT_UNKNOWN"],
  ["being deleted, and not recorded any more", ["delete"], "INDETERMINATE", gone, null, undefined],
  ["being updated", ["update"], "INDETERMINATE", there, null, "RESULT_UNKNOWN"],
  ["never reached", ["create"], "NOT_ATTEMPTED", gone, null, undefined],
  ["as it was", ["no-op"], "NO_OP", there, null, undefined],
])("of a resource that was %s", (_, actions, outcome, address, resourceId, problem) => {
  expect(recoveryProblem({ address, actions, outcome, resourceId }, recorded, false)).toBe(problem);
});

test("the engine's last state settles what began and what was changed, not what it doesn't know", () => {
  const settled = (actions: string[], outcome: ReceiptEntry["outcome"], address: string) =>
    recoveryProblem({ address, actions, outcome, resourceId: null }, recorded, true);
  expect(settled(["update"], "APPLIED", there)).toBeUndefined();
  expect(settled(["update"], "INDETERMINATE", there)).toBeUndefined();
  expect(settled(["create"], "FAILED", gone)).toBeUndefined();
  expect(settled(["create"], "APPLIED", gone)).toBe("CREATED_NOT_RECORDED");
});
