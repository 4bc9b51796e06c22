import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { LeaseState, PoolKind, PoolScaling } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import { causedTwice, heardBy, unheard, unpublished } from "../_support/event-invariants.ts";

const START_MS = 60_000;
const TEST_MS = 60_000;
const LEASES = 20;
const TTL_SECONDS = 3;
/** The sweep and one second, and what a machine that does other things adds. */
const LATENESS_MS = 10_000;

let deployment: TestDeployment;

beforeAll(async () => {
  deployment = await deploy(["execution-capacity"]);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test(
  "a flushed Redis, while leases and events are under way, costs lateness and nothing else",
  async () => {
    const { redis, stage } = deployment;
    const { capacity, databases, audience, tenantId } = stage;
    const pool = databases["execution-capacity"];
    await capacity.setWorkerPool({
      poolId: "p",
      kind: PoolKind.RUN_WORKERS,
      scaling: PoolScaling.STATIC,
      size: LEASES,
    });

    const leases = await Promise.all(
      Array.from({ length: LEASES * 2 }, async (_, index) => {
        if (index % 5 === 0) await redis.flushall();
        const { lease } = await capacity.acquireLease({
          poolId: "p",
          projectId: "project",
          holderKind: "Attempt",
          holderId: `holder-${index}`,
          ttl: { seconds: BigInt(TTL_SECONDS) },
          wait: { seconds: 60n },
        });
        return lease?.leaseId ?? "";
      }),
    );
    await redis.flushall();

    // Half of them wait for the other half to expire, and expire in turn.
    for (const leaseId of leases) {
      await eventually("EXPIRED", async () => {
        const { lease } = await capacity.getLease({ leaseId });
        return lease?.state === LeaseState.EXPIRED ? true : undefined;
      });
    }
    const { rows } = await pool.query<{ late: number }>(
      "SELECT max(extract(epoch FROM ended_at - expires_at)) * 1000 AS late FROM capacity_lease",
    );
    expect(Number(rows[0]?.late)).toBeLessThanOrEqual(LATENESS_MS);

    for (const name of ["CapacityLeaseGranted", "CapacityLeaseReleased"]) {
      await eventually(`every ${name}, though Redis lost them`, () => {
        const subjects = audience.heard(name, (event) => event.tenantid === tenantId).map(({ subject }) => subject);
        return subjects.length === leases.length && new Set(subjects).size === leases.length ? true : undefined;
      });
    }
    await eventually("an empty outbox", async () => ((await unpublished(pool)).length === 0 ? true : undefined));
    expect(await unheard(pool, "DashboardService", heardBy(audience))).toEqual([]);
    expect(await causedTwice(pool)).toEqual([]);
    const announced = await pool.query<{ events: number }>(
      "SELECT topic, count(*)::int AS events FROM outbox_message WHERE topic LIKE 'capacity.leases.%' GROUP BY topic",
    );
    expect(announced.rows.map(({ events }) => events)).toEqual([leases.length, leases.length]);
  },
  TEST_MS,
);
