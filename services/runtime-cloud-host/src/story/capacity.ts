import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { CapacityLease } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { AttemptOutcomeRecordedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import {
  LeaseState,
  PoolKind,
  PoolScaling,
  PoolState,
  WaitReason,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { AttemptOutcome } from "@runtime-cloud/contracts/runtimecloud/types/v1/run_control_pb";
import { eventually } from "./eventually.ts";
import { expect } from "./narrator.ts";
import type { Stage } from "./stage.ts";

const LIMIT = 2;
const LONG_TTL_SECONDS = 600n;
const SHORT_TTL_SECONDS = 3n;
const LATENESS_MS = 2_000;

/** Leases up to the limit, a holder that waits, one that ends, one that is forgotten. */
export async function capacityIsSharedFairly(stage: Stage): Promise<void> {
  const { narrator, capacity, tenantId } = stage;
  const poolId = `runs-${tenantId}`;
  narrator.chapter("5. Attempts compete for worker slots");
  const acquire = acquiring(stage, poolId);

  await narrator.step(`SetQuota: ${LIMIT} concurrent runs; SetWorkerPool: a static pool of 4 slots`, async () => {
    await capacity.setQuota({ concurrentRuns: LIMIT, concurrentSandboxes: 1 });
    const { pool } = await capacity.setWorkerPool({
      poolId,
      kind: PoolKind.RUN_WORKERS,
      scaling: PoolScaling.STATIC,
      size: 4,
    });
    expect(pool?.state === PoolState.ACTIVE && pool.currentSize === 4, "the pool is not ACTIVE with 4 slots");
  });
  const [first, second] = await narrator.step("leases are granted up to the limit, with rising tokens", async () => {
    const granted = [await acquire(stage.newId()), await acquire(stage.newId(), SHORT_TTL_SECONDS)] as const;
    expect(
      granted.every(({ state }) => state === LeaseState.ACTIVE),
      "a lease below the limit was not granted",
    );
    expect(tokenOf(granted[1]) > tokenOf(granted[0]), "the second token is not larger than the first");
    return granted;
  });
  const waiter = await narrator.step("the next holder waits, for TENANT_QUOTA, as number 1", async () => {
    const lease = await acquire(stage.newId());
    expect(lease.state === LeaseState.WAITING, `it is ${LeaseState[lease.state]}`);
    expect(lease.waiting?.reason === WaitReason.TENANT_QUOTA, `its reason is ${lease.waiting?.reason}`);
    expect(lease.waiting.position === 1, `its position is ${lease.waiting.position}`);
    return lease;
  });
  await narrator.step("QuotaExceeded goes out, once", () =>
    eventually("QuotaExceeded", () => {
      const heard = stage.audience.heard("QuotaExceeded", ({ data }) => data.holderId === waiter.holderId);
      return heard.length === 1 ? true : undefined;
    }),
  );
  await narrator.step(
    "AttemptOutcomeRecorded releases the first, and the waiter has it with a larger token",
    async () => {
      await stage.controlPlane.announce(
        AttemptOutcomeRecordedSchema,
        { id: first.holderId, tenantId, projectId: stage.projectId },
        { runId: stage.newId(), stepId: stage.newId(), attemptId: first.holderId, outcome: AttemptOutcome.SUCCEEDED },
      );
      const granted = await leaseIn(stage, waiter.leaseId, LeaseState.ACTIVE);
      await leaseIn(stage, first.leaseId, LeaseState.RELEASED);
      expect(tokenOf(granted) > tokenOf(second), "the waiter's token is not larger than all before it");
    },
  );
  await narrator.step(
    `the second is left to expire, and is EXPIRED within ${LATENESS_MS / 1_000} s of its instant`,
    async () => {
      const ended = await leaseIn(stage, second.leaseId, LeaseState.EXPIRED);
      expect(ended.endedAt !== undefined && ended.expiresAt !== undefined, "it has no instants");
      const latenessMs = timestampDate(ended.endedAt).getTime() - timestampDate(ended.expiresAt).getTime();
      expect(latenessMs >= 0 && latenessMs <= LATENESS_MS, `it was ${latenessMs} ms late`);
    },
  );
  await narrator.step(
    `CapacityLeaseReleased says EXPIRED after ${SHORT_TTL_SECONDS} execution seconds, once`,
    async () => {
      const [event] = await eventually("CapacityLeaseReleased", () => {
        const heard = stage.audience.heard("CapacityLeaseReleased", ({ subject }) => subject === second.leaseId);
        return heard.length === 1 ? heard : undefined;
      });
      expect(event?.data.state === "LEASE_STATE_EXPIRED", `it says ${JSON.stringify(event?.data.state)}`);
      expect(
        event.data.executionSeconds === String(SHORT_TTL_SECONDS),
        `it says ${JSON.stringify(event.data.executionSeconds)} s`,
      );
    },
  );
  await narrator.step("the database counts what is leased, and not one unit more", async () => {
    const { rows } = await stage.databases["execution-capacity"].query<{ used: number; leased: number }>(
      `SELECT used, (SELECT coalesce(sum(units), 0)::int FROM capacity_lease l
                     WHERE l.tenant_id = p.tenant_id AND l.pool_id = p.id AND l.state = 'ACTIVE') AS leased
       FROM worker_pool p WHERE tenant_id = $1 AND id = $2`,
      [tenantId, poolId],
    );
    expect(rows[0]?.used === 1 && rows[0].leased === 1, `used ${rows[0]?.used}, leased ${rows[0]?.leased}`);
  });
}

function acquiring({ capacity, projectId }: Stage, poolId: string) {
  return async (holderId: string, ttlSeconds = LONG_TTL_SECONDS): Promise<CapacityLease> => {
    const { lease } = await capacity.acquireLease({
      poolId,
      projectId,
      holderKind: "Attempt",
      holderId,
      ttl: { seconds: ttlSeconds },
      wait: { seconds: 60n },
    });
    expect(lease !== undefined, "AcquireLease answered no lease");
    return lease;
  };
}

function leaseIn({ capacity }: Stage, leaseId: string, state: LeaseState): Promise<CapacityLease> {
  return eventually(`lease ${LeaseState[state]}`, async () => {
    const { lease } = await capacity.getLease({ leaseId });
    if (lease?.state === state) return lease;
    throw new Error(`it is ${LeaseState[lease?.state ?? 0]}`);
  });
}

function tokenOf(lease: CapacityLease): bigint {
  return lease.fencingToken ?? 0n;
}
