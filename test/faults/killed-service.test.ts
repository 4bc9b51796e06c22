import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { PoolKind, PoolScaling } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import type { Stage } from "@runtime-cloud/runtime-cloud-host/story/stage";
import type pg from "pg";
import { announceEnvironment } from "../_support/announced-environment.ts";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import { causedTwice, notTakenOnce, unpublished } from "../_support/event-invariants.ts";
import { countRows, lockTable } from "../_support/rows.ts";

const START_MS = 60_000;
const TEST_MS = 120_000;

let deployment: TestDeployment;

beforeEach(async () => {
  deployment = await deploy([]);
}, START_MS);
afterEach(() => deployment.close(), START_MS);

test(
  "an event whose service is killed between its commit and its publication still goes out, once",
  async () => {
    const { services, stage, pauseQueues, resumeQueues } = deployment;
    const database = stage.databases["execution-capacity"];
    await services.start("execution-capacity");
    await pauseQueues();
    const leaseId = await acquireLease(stage);
    await services.kill("execution-capacity");
    expect(await unpublished(database)).not.toEqual([]);

    await resumeQueues();
    await services.start("execution-capacity");
    await eventually("an empty outbox", async () => ((await unpublished(database)).length === 0 ? true : undefined));
    const granted = await eventually("CapacityLeaseGranted", () => {
      const heard = stage.audience.heard("CapacityLeaseGranted", ({ subject }) => subject === leaseId);
      return heard.length > 0 ? heard : undefined;
    });
    expect(granted).toHaveLength(1);
    expect(await history(database, leaseId)).toEqual(["ACTIVE"]);
  },
  TEST_MS,
);

test(
  "an event whose service is killed between its publication and its mark comes again, and takes effect once",
  async () => {
    const { services, stage, pauseQueues, resumeQueues, inboxIsDone } = deployment;
    const producer = stage.databases["iac-provisioning"];
    const consumer = stage.databases["runtime-environment"];
    await Promise.all([services.start("iac-provisioning"), services.start("runtime-environment")]);
    const environmentId = await announceEnvironment(stage);
    await eventually("an observed environment with nothing under way", async () => {
      const { environment } = await stage.environments.getEnvironment({ environmentId });
      return environment?.observedAt && (await unpublished(producer)).length === 0 ? true : undefined;
    });

    await pauseQueues();
    const { specification } = await stage.provisioning.declareSpecification({
      environmentId,
      kind: SpecificationKind.RELEASE,
      programVersion: "web-service@1.0.0",
      parameters: { name: "shop", environment: "shop", version: "1.0.0" },
    });
    const declared = specification?.specificationId ?? "";
    const taken = () =>
      countRows(consumer, "tracked_specification WHERE kind = 'RELEASE' AND declared_specification_id = $1", declared);
    // Who holds the table like this keeps rows from being marked as published, and from nothing else.
    const release = await lockTable(producer, "outbox_message");
    await resumeQueues();
    await eventually("the effect", async () => ((await taken()) === 1 ? true : undefined));
    await services.kill("iac-provisioning");
    await release();
    expect(await unpublished(producer)).toHaveLength(1);

    await services.start("iac-provisioning");
    await eventually("an empty outbox", async () => ((await unpublished(producer)).length === 0 ? true : undefined));
    await inboxIsDone("RuntimeEnvironmentService");
    const { rows } = await producer.query<{ id: string }>("SELECT id FROM outbox_message WHERE subject = $1", [
      declared,
    ]);
    expect(rows).toHaveLength(1);
    const events = rows.map(({ id }) => id);
    expect(await notTakenOnce(consumer, { handler: "TrackDeclared", events })).toEqual([]);
    expect(await taken()).toBe(1);
  },
  TEST_MS,
);

test(
  "an event whose service is killed after its mark, before anybody has taken it in, takes effect once",
  async () => {
    const { services, stage, inboxIsDone } = deployment;
    const [producer, consumer] = [stage.databases["iac-provisioning"], stage.databases["runtime-environment"]];
    await services.start("iac-provisioning");
    const environmentId = await announceEnvironment(stage);
    await eventually("an applied baseline, all of it published", async () => {
      const applied = await countRows(producer, "outbox_message WHERE topic LIKE $1", "%provisioning-applied");
      return applied === 1 && (await unpublished(producer)).length === 0 ? true : undefined;
    });
    await services.kill("iac-provisioning");
    expect(await countRows(consumer, "inbox_receipt WHERE handler <> $1", "")).toBe(0);

    await Promise.all([services.start("runtime-environment"), services.start("iac-provisioning")]);
    await inboxIsDone("RuntimeEnvironmentService");
    for (const [handler, topic] of [
      ["TrackDeclared", "%specification-declared"],
      ["ObserveAfterApply", "%provisioning-applied"],
    ] as const) {
      const { rows } = await producer.query<{ id: string }>("SELECT id FROM outbox_message WHERE topic LIKE $1", [
        topic,
      ]);
      const events = rows.map(({ id }) => id);
      expect(events).toHaveLength(1);
      expect(await notTakenOnce(consumer, { handler, events })).toEqual([]);
    }
    expect(await causedTwice(consumer)).toEqual([]);
    const tracked = "tracked_specification WHERE inventory_id = $1 AND declared_version = 1 AND applied_version = 1";
    expect(await countRows(consumer, tracked, environmentId)).toBe(1);
  },
  TEST_MS,
);

async function acquireLease({ capacity, projectId, newId }: Stage): Promise<string> {
  await capacity.setWorkerPool({ poolId: "pool", kind: PoolKind.RUN_WORKERS, scaling: PoolScaling.STATIC, size: 1 });
  const { lease } = await capacity.acquireLease({
    poolId: "pool",
    projectId,
    holderKind: "Attempt",
    holderId: newId(),
    ttl: { seconds: 600n },
  });
  return lease?.leaseId ?? "";
}

async function history(pool: pg.Pool, aggregateId: string): Promise<string[]> {
  const { rows } = await pool.query<{ state: string }>(
    "SELECT to_state AS state FROM transition WHERE aggregate_id = $1 ORDER BY version",
    [aggregateId],
  );
  return rows.map(({ state }) => state);
}
