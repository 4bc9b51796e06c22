import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/control_plane_pb";
import { PoolKind, PoolScaling } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/control_plane_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { inboxOf } from "@runtime-cloud/eventing/inbox-job";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import type { Stage } from "@runtime-cloud/runtime-cloud-host/story/stage";
import type { Redis } from "ioredis";
import type pg from "pg";
import { deploy, type TestDeployment } from "../_support/deployment.ts";

const START_MS = 60_000;
const TEST_MS = 120_000;
const PAUSE_MS = 60_000;

let deployment: TestDeployment;

beforeEach(async () => {
  deployment = await deploy([]);
}, START_MS);
afterEach(() => deployment.close(), START_MS);

test(
  "an event whose service is killed between its commit and its publication still goes out, once",
  async () => {
    const { services, stage, redis } = deployment;
    const database = stage.databases["execution-capacity"];
    await services.start("execution-capacity");
    await pauseQueues(redis);
    const leaseId = await acquireLease(stage);
    await services.kill("execution-capacity");
    expect(await unpublished(database)).toBeGreaterThan(0);

    await resumeQueues(redis);
    await services.start("execution-capacity");
    await eventually("an empty outbox", async () => ((await unpublished(database)) === 0 ? true : undefined));
    const granted = await eventually("CapacityLeaseGranted", () => {
      const heard = stage.audience.heard("CapacityLeaseGranted", ({ subject }) => subject === leaseId);
      return heard.length > 0 ? heard : undefined;
    });
    expect(granted).toHaveLength(1);
    expect(await history(database, leaseId)).toEqual(["WAITING", "ACTIVE"]);
  },
  TEST_MS,
);

test(
  "an event whose service is killed between its publication and its mark comes again, and takes effect once",
  async () => {
    const { services, stage, redis } = deployment;
    const producer = stage.databases["iac-provisioning"];
    const consumer = stage.databases["runtime-environment"];
    await Promise.all([services.start("iac-provisioning"), services.start("runtime-environment")]);
    const environmentId = await createEnvironment(stage);
    await eventually("an observed environment with nothing under way", async () => {
      const { environment } = await stage.environments.getEnvironment({ environmentId });
      return environment?.observedAt && (await unpublished(producer)) === 0 ? true : undefined;
    });

    await pauseQueues(redis);
    const { specification } = await stage.provisioning.declareSpecification({
      environmentId,
      kind: SpecificationKind.RELEASE,
      programVersion: "web-service@1.0.0",
      parameters: { name: "shop", environment: "shop", version: "1.0.0" },
    });
    const declared = specification?.specificationId ?? "";
    const taken = () =>
      count(consumer, "tracked_specification WHERE kind = 'RELEASE' AND declared_specification_id = $1", declared);
    // Who holds the table like this keeps rows from being marked as published, and from nothing else.
    const release = await lockTable(producer, "outbox_message");
    await resumeQueues(redis);
    await eventually("the effect", async () => ((await taken()) === 1 ? true : undefined));
    await services.kill("iac-provisioning");
    await release();
    expect(await unpublished(producer)).toBe(1);

    await services.start("iac-provisioning");
    await eventually("an empty outbox", async () => ((await unpublished(producer)) === 0 ? true : undefined));
    await queueIsDone(deployment, "RuntimeEnvironmentService");
    const { rows } = await producer.query<{ id: string }>("SELECT id FROM outbox_message WHERE subject = $1", [
      declared,
    ]);
    expect(rows).toHaveLength(1);
    expect(await count(consumer, "inbox_receipt WHERE event_id = $1", rows[0]?.id ?? "")).toBe(1);
    expect(await taken()).toBe(1);
  },
  TEST_MS,
);

test(
  "an event whose service is killed between its effect and its acknowledgement comes again, without a second effect",
  async () => {
    const { services, stage, redis } = deployment;
    const database = stage.databases["runtime-environment"];
    await services.start("runtime-environment");
    const release = await lockTable(database, "inventory");
    const environmentId = await createEnvironment(stage);
    await eventually("a handler in its transaction", async () => {
      const waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND $1 <> ''";
      return (await count(database, waiting, "any")) > 0 ? true : undefined;
    });
    await pauseQueues(redis);
    await release();
    const created = () => count(database, "inventory WHERE id = $1", environmentId);
    await eventually("the effect", async () => ((await created()) === 1 ? true : undefined));
    await services.kill("runtime-environment");

    await resumeQueues(redis);
    await services.start("runtime-environment");
    await queueIsDone(deployment, "RuntimeEnvironmentService");
    expect(await created()).toBe(1);
    expect(await history(database, environmentId)).toContain("UNOBSERVED");
    expect(await count(database, "transition WHERE event = 'create' AND aggregate_id = $1", environmentId)).toBe(1);
    expect(await count(database, "inbox_receipt WHERE handler = $1", "StartInventory")).toBe(1);
  },
  TEST_MS,
);

/** Nothing can be added to a queue or taken off it; everything else goes on. */
async function pauseQueues(redis: Redis): Promise<void> {
  await redis.call("CLIENT", "PAUSE", String(PAUSE_MS), "WRITE");
}

async function resumeQueues(redis: Redis): Promise<void> {
  await redis.call("CLIENT", "UNPAUSE");
}

async function acquireLease({ capacity, projectId, newId }: Stage): Promise<string> {
  await capacity.setWorkerPool({ poolId: "pool", kind: PoolKind.GENERAL, scaling: PoolScaling.STATIC, size: 1 });
  const { lease } = await capacity.acquireLease({
    poolId: "pool",
    projectId,
    holderKind: "Attempt",
    holderId: newId(),
    ttl: { seconds: 600n },
  });
  return lease?.leaseId ?? "";
}

async function createEnvironment({ controlPlane, tenantId, projectId, newId }: Stage): Promise<string> {
  const environmentId = newId();
  await controlPlane.announce(
    EnvironmentCreatedSchema,
    { id: environmentId, tenantId, projectId },
    { environmentId, tenantId, projectId, class: EnvironmentClass.TEST },
  );
  return environmentId;
}

/** Keeps everybody from writing to a table until the answer is called. */
async function lockTable(pool: pg.Pool, table: string): Promise<() => Promise<void>> {
  const client = await pool.connect();
  await client.query("BEGIN");
  await client.query(`LOCK TABLE ${table} IN SHARE MODE`);
  return async () => {
    await client.query("ROLLBACK");
    client.release();
  };
}

async function queueIsDone({ backend }: TestDeployment, subscriber: string): Promise<void> {
  const queue = backend.queue(inboxOf(subscriber));
  await eventually(`an empty ${queue.name}`, async () => {
    const open = await queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized");
    return open === 0 ? true : undefined;
  });
}

async function unpublished(pool: pg.Pool): Promise<number> {
  return count(pool, "outbox_message WHERE published_at IS NULL AND $1 <> ''", "any");
}

async function history(pool: pg.Pool, aggregateId: string): Promise<string[]> {
  const { rows } = await pool.query<{ state: string }>(
    "SELECT to_state AS state FROM transition WHERE aggregate_id = $1 ORDER BY version",
    [aggregateId],
  );
  return rows.map(({ state }) => state);
}

async function count(pool: pg.Pool, fromWhere: string, parameter: string): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${fromWhere}`, [parameter]);
  return rows[0]?.count ?? 0;
}
