import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type {
  AcquireLeaseRequestSchema,
  CapacityLease,
  LeaseResult,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { ExplainCapacityResponse_Outcome as Outcome } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/usage_pb";
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
import { openLeaseSession } from "./lease-session.ts";
import { expect } from "./narrator.ts";
import type { Stage } from "./stage.ts";

const LIMIT = 2;
const LONG_TTL_SECONDS = 600n;
const SHORT_TTL_SECONDS = 3n;
const LATENESS_MS = 2_000;

/** Leases up to the limit, a holder that waits, one that ends, one that is forgotten: by a batch, a session and a watch. */
export async function capacityIsSharedFairly(stage: Stage): Promise<void> {
  const { narrator, capacity, tenantId } = stage;
  const poolId = `runs-${tenantId}`;
  narrator.chapter("6. Attempts compete for worker slots");
  const attempt = attemptsOf(stage, poolId);

  await narrator.step(`SetQuota: ${LIMIT} concurrent runs; SetWorkerPool: a static pool of 4 slots`, async () => {
    await capacity.setQuota({ concurrentRuns: LIMIT, concurrentSandboxes: 1 });
    const { pool } = await capacity.setWorkerPool({
      poolId,
      kind: PoolKind.RUN_WORKERS,
      scaling: PoolScaling.STATIC,
      size: 4,
      labels: { zone: "a" },
    });
    expect(pool?.state === PoolState.ACTIVE && pool.currentSize === 4, "the pool is not ACTIVE with 4 slots");
  });
  const [first, second] = await narrator.step("BatchLeases grants up to the limit, with rising tokens", async () => {
    const { results } = await capacity.batchLeases({
      operations: [acquiring(attempt(LONG_TTL_SECONDS)), acquiring(attempt(SHORT_TTL_SECONDS))],
    });
    const granted = [leaseOf(results[0]), leaseOf(results[1])] as const;
    expect(
      granted.every(({ state }) => state === LeaseState.ACTIVE),
      "a lease below the limit was not granted",
    );
    expect(tokenOf(granted[1]) > tokenOf(granted[0]), "the second token is not larger than the first");
    return granted;
  });
  const session = openLeaseSession(stage);
  const [waiter, results] = await narrator.step(
    "in a LeaseSession the next holder, for any pool of zone a, waits for TENANT_QUOTA, as number 1",
    async () => {
      const { poolId: _, ...anywhere } = attempt(LONG_TTL_SECONDS);
      const selector = { kind: PoolKind.RUN_WORKERS, labels: { zone: "a" } };
      const answers = session.send(acquiring({ ...anywhere, selector }));
      const lease = leaseOf(await nextOf(answers));
      expect(lease.state === LeaseState.WAITING, `it is ${LeaseState[lease.state]}`);
      expect(lease.waiting?.reason === WaitReason.TENANT_QUOTA, `its reason is ${lease.waiting?.reason}`);
      expect(lease.waiting.position === 1, `its position is ${lease.waiting.position}`);
      return [lease, answers] as const;
    },
  );
  await narrator.step("ExplainCapacity says what one more would get, and why", async () => {
    const { outcome, explanation } = await capacity.explainCapacity({ acquire: attempt(LONG_TTL_SECONDS) });
    expect(outcome === Outcome.WAITS, `it says ${Outcome[outcome]}`);
    expect(explanation.includes(`concurrentRuns=${LIMIT}`), `it says: ${explanation}`);
  });
  await narrator.step("QuotaExceeded goes out, once", () =>
    eventually("QuotaExceeded", () => {
      const heard = stage.audience.heard("QuotaExceeded", ({ data }) => data.holderId === waiter.holderId);
      return heard.length === 1 ? true : undefined;
    }),
  );
  await narrator.step(
    "AttemptOutcomeRecorded releases the first, and the session hears that the waiter has it, with a larger token",
    async () => {
      await stage.controlPlane.announce(
        AttemptOutcomeRecordedSchema,
        { id: first.holderId, tenantId, projectId: stage.projectId },
        { runId: stage.newId(), stepId: stage.newId(), attemptId: first.holderId, outcome: AttemptOutcome.SUCCEEDED },
      );
      const granted = leaseOf(await nextOf(results));
      expect(granted.state === LeaseState.ACTIVE, `it is ${LeaseState[granted.state]}`);
      await leaseIn(stage, first.leaseId, LeaseState.RELEASED);
      expect(tokenOf(granted) > tokenOf(second), "the waiter's token is not larger than all before it");
      await session.close();
    },
  );
  await narrator.step(
    `WatchLease follows the second, which nobody renews, to its end, EXPIRED within ${LATENESS_MS / 1_000} s of its instant`,
    async () => {
      const ended = await lastOf(stage, second.leaseId);
      expect(ended.state === LeaseState.EXPIRED, `it is ${LeaseState[ended.state]}`);
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
  await narrator.step("GetCapacityUsage counts what is leased, and not one unit more", async () => {
    const { tenant } = await capacity.getCapacityUsage({});
    const { pool } = await capacity.getWorkerPool({ poolId });
    expect(tenant?.runs?.used === 1 && pool?.used === 1, `used ${tenant?.runs?.used}, in the pool ${pool?.used}`);
  });
}

/** Each call is for an attempt of its own. */
function attemptsOf({ projectId, newId }: Stage, poolId: string) {
  return (ttlSeconds: bigint) => ({
    poolId,
    projectId,
    holderKind: "Attempt",
    holderId: newId(),
    ttl: { seconds: ttlSeconds },
    wait: { seconds: 60n },
  });
}

function acquiring(value: MessageInitShape<typeof AcquireLeaseRequestSchema>) {
  return { operation: { case: "acquire", value } } as const;
}

function leaseOf(answer: LeaseResult | undefined): CapacityLease {
  const { result } = answer ?? {};
  if (result?.case === "error") throw new Error(result.value.message);
  expect(result?.value?.lease !== undefined, "no lease was answered");
  return result.value.lease;
}

async function nextOf(answers: AsyncIterator<LeaseResult, undefined>): Promise<LeaseResult | undefined> {
  return (await answers.next()).value;
}

/** Follows a lease until it has ended. */
async function lastOf({ capacity }: Stage, leaseId: string): Promise<CapacityLease> {
  let last: CapacityLease | undefined;
  for await (const { lease } of capacity.watchLease({ leaseId })) last = lease;
  expect(last !== undefined, "nothing was told of it");
  return last;
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
