import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { PoolKind, PoolScaling } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import { heardBy, unheard, unpublished } from "../_support/event-invariants.ts";

const START_MS = 60_000;
const TEST_MS = 150_000;
const AWAY_MS = 30_000;
const PACE_MS = 50;

let deployment: TestDeployment;

beforeAll(async () => {
  deployment = await deploy(["execution-capacity"]);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test(
  "with Redis away for 30 s commands go on succeeding, and once it is back, empty, every event goes out",
  async () => {
    const { stage, killRedis, restartRedis } = deployment;
    const { capacity, audience, projectId, newId } = stage;
    const outbox = stage.databases["execution-capacity"];
    const pool = { poolId: "pool", kind: PoolKind.RUN_WORKERS, scaling: PoolScaling.STATIC, size: 10_000 };
    await capacity.setWorkerPool(pool);
    let commands = 0;
    const command = async () => {
      commands += 1;
      await capacity.setQuota({ concurrentRuns: commands, concurrentSandboxes: 1 });
      const holder = { holderKind: "Attempt", holderId: newId(), ttl: { seconds: 600n } };
      await capacity.acquireLease({ poolId: "pool", projectId, ...holder });
    };
    await command();
    await eventually("the first events out", async () => (await unpublished(outbox)).length === 0 || undefined);

    await killRedis();
    for (const gone = performance.now(); performance.now() - gone < AWAY_MS; await wait(PACE_MS)) await command();
    expect((await unpublished(outbox)).length).toBeGreaterThanOrEqual(commands);
    await restartRedis();
    await command();

    const broken = async () => [
      ...(await unpublished(outbox)),
      ...(await unheard(outbox, "AuditService", heardBy(audience))),
      ...(await unheard(outbox, "DashboardService", heardBy(audience))),
    ];
    await eventually("a drained backlog", async () => (await broken()).length === 0 || undefined);
    const versions = audience.heard("QuotaChanged", () => true).map(({ aggregateversion = 0 }) => aggregateversion);
    expect(new Set(versions)).toEqual(new Set(Array.from({ length: commands }, (_, version) => version)));
  },
  TEST_MS,
);
