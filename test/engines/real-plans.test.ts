import {
  changesSomething,
  changesState,
  isDestructive,
  summarize,
} from "@runtime-cloud/iac-provisioning/engines/engine-result";
import { projectRefresh } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-plan-projection";
import { expect, test } from "@jest/globals";

import { changeOf, planOf, planOfFile, readPlan, resourceChange } from "./read-plan.ts";

const MASK = "(sensitive value)";
const LATER = "(known after apply)";
const APP = 'module.web["blue/eu"].aws_instance.app[0]';

test.each(["aws.json", "google.json", "kubernetes.json", "azure.json"])(
  "nothing of %s that may be shown holds a secret, in clear or in base64",
  async (name) => {
    const { secrets, sensitiveOutputs: _sealed, relevant: _kept, ...shown } = await planOfFile(name);
    const text = JSON.stringify(shown);
    expect(text).not.toContain("s3cret");
    expect(text).not.toContain(Buffer.from("s3cret").toString("base64"));
    expect(secrets.filter((secret) => secret.includes("s3cret")).length).toBeGreaterThan(0);
  },
);

test("a plan reads the same whatever pieces it comes in", async () => {
  expect(await planOfFile("aws.json", 7)).toEqual(await planOfFile("aws.json", 1_000_000));
});

test("both orders of a replacement count as one replace, and as destruction", async () => {
  const plan = await planOfFile("aws.json");
  expect(changeOf(plan, APP).actions).toEqual(["delete", "create"]);
  expect(changeOf(plan, "aws_launch_template.app").actions).toEqual(["create", "delete"]);
  // Adds: the one that leaves its predecessor be. Deletes: the deposed object. Reads, moves and forgets count nowhere.
  expect(summarize(plan.changes)).toEqual({ adds: 1, changes: 2, deletes: 1, replaces: 2 });
  expect(isDestructive(plan.changes)).toBe(true);
});

test("a replacement tells what forces it, and any reason passes", async () => {
  const plan = await planOfFile("aws.json");
  expect(changeOf(plan, APP).actionReason).toBe("replace_because_cannot_update: ami, ebs_block_device[0].volume_size");
  expect(changeOf(plan, "aws_eip.kept").actionReason).toBe("a_reason_of_next_year");
});

test("what only the apply will tell shows so at any depth, and keeps its place in lists and sets", async () => {
  const { after } = changeOf(await planOfFile("aws.json"), APP);
  expect(after).toMatchObject({
    id: LATER,
    network_interface: LATER,
    ebs_block_device: [{ device_name: "/dev/sdf", volume_id: LATER, volume_size: 20 }],
    security_groups: [LATER, "default"],
    tags: { Name: "app", team: "core" },
    timeouts: null,
  });
  const manifest = changeOf(await planOfFile("kubernetes.json"), "kubernetes_manifest.worker").after;
  expect(manifest).toEqual({ manifest: { kind: "Deployment", spec: { replicas: 2 } }, object: LATER });
});

test("an object that is wholly unknown after the change shows its names, not that it is gone", () => {
  const unknown = { actions: ["update"], before: { id: "i-1", size: 2 }, after_unknown: true };
  expect(changeOf(planOf({ resource_changes: [resourceChange("vm.a", unknown)] }), "vm.a").after).toEqual({
    id: LATER,
    size: LATER,
  });
});

test("there is nothing after a delete, though the engine gives it an empty mask", async () => {
  expect(changeOf(await planOfFile("google.json"), "google_project.shop").after).toBeNull();
});

test("a deposed object is a change of its own under its successor's address", async () => {
  const { changes } = await planOfFile("aws.json");
  expect(
    changes.filter(({ address }) => address === APP).map(({ deposed, actions }) => ({ deposed, actions })),
  ).toEqual([
    { deposed: undefined, actions: ["delete", "create"] },
    { deposed: "b3c9a1f0", actions: ["delete"] },
  ]);
});

test("a move, and an import, change nothing in the world but are no empty plan", async () => {
  const plan = await planOfFile("aws.json");
  const moved = changeOf(plan, "aws_security_group.web");
  const imported = changeOf(plan, "aws_route53_zone.main");
  expect(moved).toMatchObject({ actions: ["no-op"], previousAddress: "aws_security_group.old" });
  expect(imported).toMatchObject({ actions: ["no-op"], importId: "Z123" });
  for (const change of [moved, imported]) {
    expect(changesSomething(change)).toBe(false);
    expect(changesState(change)).toBe(true);
  }
  expect(changeOf(plan, "aws_sqs_queue.jobs").importId).toBe(
    '{"account_id":"123456789012","url":"https://sqs.example.org/jobs"}',
  );
});

test("an import whose id is not known yet says so", () => {
  const change = { actions: ["no-op"], before: {}, after: {}, importing: { unknown: true } };
  expect(changeOf(planOf({ resource_changes: [resourceChange("vm.a", change)] }), "vm.a").importId).toBe(LATER);
});

test("what is forgotten is neither deleted nor destroyed", async () => {
  const { changes } = await planOfFile("aws.json");
  const forgotten = changes.filter(({ actions }) => actions.join() === "forget");
  expect(forgotten).toMatchObject([{ address: 'aws_s3_bucket.archive["2024"]', before: { bucket: "archive-2024" } }]);
  expect(isDestructive(forgotten)).toBe(false);
  expect(forgotten.every(changesState)).toBe(true);
});

test("the reading of a data source is shown, and changes nothing", async () => {
  const read = changeOf(await planOfFile("aws.json"), "data.aws_ami.latest");
  expect(read).toMatchObject({ actions: ["read"], after: { owners: ["amazon"], id: LATER } });
  expect(changesState(read)).toBe(false);
});

test("a value that has become sensitive is masked on both sides of the change", async () => {
  const { before, after } = changeOf(await planOfFile("aws.json"), "aws_db_instance.main");
  expect(before).toMatchObject({ password: MASK, username: "app", parameters: { note: MASK } });
  expect(after).toMatchObject({ password: MASK, allocated_storage: 40, parameters: { note: MASK } });
});

test("an object that is sensitive as a whole shows its names only", async () => {
  const { before, after } = changeOf(await planOfFile("kubernetes.json"), "kubernetes_config_map.whole");
  expect({ before, after }).toEqual({ before: { id: MASK, data: MASK }, after: { id: MASK, data: MASK } });
});

test("sensitive parts of blocks, lists and maps are masked, and their texts are secrets elsewhere", async () => {
  const plan = await planOfFile("kubernetes.json");
  expect(changeOf(plan, "helm_release.web").after).toMatchObject({
    set: [{ name: "replicas", value: "3" }],
    set_sensitive: [
      { name: "db.password", value: MASK },
      { name: "pin", value: MASK },
    ],
    values: [`password: ${MASK}\nreplicas: 3\n`],
    metadata: LATER,
    repository_password: MASK,
  });
  expect(changeOf(plan, "kubernetes_secret.registry")).toMatchObject({ before: { data: MASK }, after: { data: MASK } });
  expect(changeOf(await planOfFile("google.json"), "google_container_cluster.main").after).toMatchObject({
    master_auth: [{ client_certificate: "", client_key: MASK }],
  });
});

test("secrets of data sources and of modules at any depth are known, though no change has them", async () => {
  const { secrets } = await planOfFile("aws.json");
  expect(secrets).toEqual(expect.arrayContaining(["s3cret-of-a-data-source", "s3cret-of-a-deep-module"]));
});

test("the resources that are there are told by module, without data sources", async () => {
  const { resources } = await planOfFile("aws.json");
  expect(resources).toEqual([
    {
      address: "aws_db_instance.main",
      resourceType: "aws_db_instance",
      id: "db-1",
      attributes: { id: "db-1", password: MASK, allocated_storage: 20 },
    },
    {
      address: 'module.web["blue/eu"].module.deep.aws_iam_access_key.ci',
      resourceType: "aws_iam_access_key",
      id: "AKIAEXAMPLE",
      attributes: { id: "AKIAEXAMPLE", secret: MASK, status: "Active" },
    },
  ]);
});

test("a number that no double holds is shown to the last digit", async () => {
  expect(changeOf(await planOfFile("aws.json"), "aws_db_instance.main")).toMatchObject({
    before: { max_iops: "9007199254740993", allocated_storage: 20 },
    after: { max_iops: "9007199254740995" },
  });
  expect(changeOf(await planOfFile("google.json"), "google_project.shop").before).toEqual({
    id: "projects/shop",
    number: "123456789012",
    generation: "18446744073709551615",
    share: 0.25,
  });
});

test("known outputs are told, sensitive ones are not, and a change of outputs alone is a change", async () => {
  const plan = await planOfFile("aws.json");
  expect(plan.outputs).toEqual({ endpoint: "web.example.org" });
  expect(plan.changesOutputs).toBe(true);
  const same = { actions: ["no-op"], before: 1, after: 1 };
  expect(planOf({ output_changes: { a: same } }).changesOutputs).toBe(false);
});

test("a check that does not hold is told, without the secret in its words", async () => {
  expect((await planOfFile("aws.json")).failingChecks).toEqual([
    `check.certificate does not hold: the certificate of ${MASK} ends in 3 days`,
  ]);
});

test("a refresh-only plan records what changed, forgets what is gone, and moves what moved", () => {
  const drift = planOf({
    resource_drift: [
      resourceChange("vm.a", { actions: ["update"], before: { a: 1 }, after: { a: 2 } }),
      resourceChange("vm.b", { actions: ["delete"], before: { a: 1 }, after: null }),
      resourceChange("vm.c", { actions: ["no-op"], before: {}, after: {} }, { previous_address: "vm.old" }),
    ],
  }).drift;
  expect(projectRefresh(drift).map(({ address, actions }) => [address, actions])).toEqual([
    ["vm.a", ["update"]],
    ["vm.b", ["forget"]],
    ["vm.c", ["no-op"]],
  ]);
});

test("ephemeral resources are no changes; actions that the apply runs are told", () => {
  const opened = resourceChange("ephemeral.vault.a", { actions: ["open"] }, { mode: "ephemeral" });
  expect(planOf({ resource_changes: [opened] }).changes).toEqual([]);
  expect(planOf({ action_invocations: [{ address: "action.lambda.a" }] }).invokesActions).toBe(true);
});

test("a plan of OpenTofu, which says neither complete nor applyable, is complete", async () => {
  expect((await planOfFile("azure.json")).changes).toHaveLength(4);
});

test.each<[string, object, string]>([
  [
    "with an action that is not known",
    { resource_changes: [resourceChange("vm.a", { actions: ["melt"], before: {}, after: {} })] },
    "vm.a: action melt is not known to this version",
  ],
  ["that is not complete", { complete: false }, "the plan is incomplete: the engine puts off some changes"],
  [
    "with changes that are put off",
    { deferred_changes: [{ reason: "provider_config_unknown", resource_change: resourceChange("vm.a", {}) }] },
    "puts off vm.a (provider_config_unknown)",
  ],
  ["that failed halfway", { errored: true }, "the engine's plan is incomplete by an error"],
  ["of another major format", { format_version: "2.0" }, 'plan format "2.0" is not known'],
  ["without a format", { format_version: undefined }, "tells no format_version"],
  ["whose change has another form", { resource_changes: [{ address: "vm.a" }] }, "(at resource_changes.0."],
  ["whose changes are no list", { resource_changes: "none" }, "resource_changes is neither an object nor an array"],
])("a plan %s is refused", (_, fields, message) => {
  expect(() => planOf(fields)).toThrow(message);
});

test.each([
  ["cut short", '{"format_version":"1.2","resource_changes":[{"address"'],
  ["no JSON", "Error: no such plan s3cret"],
  ["no object", "[1]"],
  ["empty", ""],
])("a document that is %s is refused, and nothing of it is quoted", (_, text) => {
  expect(() => readPlan(Buffer.from(text))).toThrow(/has not the form of a plan/);
  expect(() => readPlan(Buffer.from(text))).not.toThrow(/s3cret/);
});

test("fields that a newer minor version adds are left alone", () => {
  const novel = resourceChange(
    "vm.a",
    { actions: ["create"], after: { a: 1 }, before_identity: {} },
    { novelty: [{}] },
  );
  expect(planOf({ format_version: "1.9", novelty: { a: [1] }, resource_changes: [novel] }).changes).toHaveLength(1);
});
