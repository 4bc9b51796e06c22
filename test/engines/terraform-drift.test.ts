import { terraformDrift } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-drift";
import { expect, test } from "@jest/globals";

import { planOf } from "./read-plan.ts";

const resource = (address: string, change: object) => ({ address, mode: "managed", type: "vm", name: "x", change });

test("a resource that is gone outside is missing, one outside the specification is unmanaged", () => {
  const plan = planOf({
    resource_changes: [
      resource("vm.gone", { actions: ["create"], before: null, after: { size: 1 }, after_unknown: { id: true } }),
      resource("vm.extra", { actions: ["delete"], before: { id: "i-2", size: 2, tags: {} }, after: null }),
      resource("vm.same", { actions: ["no-op"], before: { size: 3 }, after: { size: 3 } }),
    ],
  });
  expect(terraformDrift(plan)).toMatchObject([
    { address: "vm.gone", kind: "RESOURCE_MISSING", attributePath: "", after: null },
    { address: "vm.extra", kind: "RESOURCE_UNMANAGED", before: null, after: { id: "i-2", size: 2 } },
  ]);
});

test("an attribute tells what is declared before and what is observed after; what only the apply tells is none", () => {
  const plan = planOf({
    resource_changes: [
      resource("vm.a", {
        actions: ["update"],
        before: { size: 9, disks: [{ gb: 1 }, { gb: 8 }], etag: "x" },
        after: { size: 3, disks: [{ gb: 1 }, { gb: 2 }] },
        after_unknown: { etag: true },
      }),
    ],
  });
  expect(terraformDrift(plan)).toEqual([
    {
      address: "vm.a",
      resourceType: "vm",
      kind: "ATTRIBUTE_CHANGED",
      attributePath: "disks[1].gb",
      before: 2,
      after: 8,
    },
    { address: "vm.a", resourceType: "vm", kind: "ATTRIBUTE_CHANGED", attributePath: "size", before: 3, after: 9 },
  ]);
});

test("a change outside counts only where a planned change depends on it", () => {
  const drifted = resource("vm.a", { actions: ["update"], before: { ip: "1" }, after: { ip: "2" } });
  expect(terraformDrift(planOf({ resource_drift: [drifted] }))).toEqual([]);
  const relevant = planOf({
    resource_drift: [drifted],
    relevant_attributes: [{ resource: "vm.a", attribute: ["ip"] }],
  });
  expect(terraformDrift(relevant)).toMatchObject([{ address: "vm.a", attributePath: "ip", before: "1", after: "2" }]);
});

test("what changed outside is found by its address without the keys of instances and modules", () => {
  const address = 'module.net["a]b"].vm.a[0]';
  const drifted = resource(address, { actions: ["delete"], before: { ip: "1" }, after: null });
  const plan = planOf({
    resource_drift: [drifted],
    relevant_attributes: [{ resource: "module.net.vm.a", attribute: ["ip"] }],
  });
  expect(terraformDrift(plan)).toMatchObject([{ address, kind: "RESOURCE_MISSING", before: { ip: "1" }, after: null }]);
});

test("a replacement that no attribute explains still shows, with the engine's reason", () => {
  const plan = planOf({
    resource_changes: [
      {
        ...resource("vm.a", { actions: ["delete", "create"], before: { size: 1 }, after: { size: 1 } }),
        action_reason: "replace_because_tainted",
      },
    ],
  });
  expect(terraformDrift(plan)).toMatchObject([
    { address: "vm.a", attributePath: "", after: "replace_because_tainted" },
  ]);
});

test("sensitive values are masked by the engine's marks and by their names, and are known as secrets", () => {
  const plan = planOf({
    variables: { key: { value: "v-secret" }, size: { value: 3 } },
    configuration: { root_module: { variables: { key: { sensitive: true }, size: {} } } },
    resource_changes: [
      resource("vm.a", {
        actions: ["create"],
        before: null,
        after: { login: { user: "u", pin: 424242 }, adminPassword: "hidden-by-name", token: null },
        after_sensitive: { login: { pin: true } },
      }),
    ],
    prior_state: {
      values: {
        root_module: {
          child_modules: [
            {
              resources: [
                {
                  ...resource("module.m.vm.b", {}),
                  values: { id: "i-9", seed: "s-secret" },
                  sensitive_values: { seed: true },
                },
              ],
            },
          ],
        },
      },
    },
  });
  expect(plan.changes[0]?.after).toEqual({
    login: { user: "u", pin: "(sensitive value)" },
    adminPassword: "(sensitive value)",
    token: null,
  });
  expect([...plan.secrets].sort()).toEqual(["424242", "s-secret", "v-secret"]);
  expect(plan.resources).toEqual([
    { address: "module.m.vm.b", resourceType: "vm", id: "i-9", attributes: { id: "i-9", seed: "(sensitive value)" } },
  ]);
});
