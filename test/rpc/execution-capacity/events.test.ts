import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { LeaseState, PoolKind, ReleaseReason } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { type Inbox, type InboxOutcome, startInbox } from "@runtime-cloud/eventing/inbox";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { inbox as handlers } from "@runtime-cloud/execution-capacity/inbox";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  patiently,
  startCapacity,
  staticPool,
} from "../../_support/execution-capacity.ts";
import { testRedis } from "../../_support/redis.ts";

const subscriber = "ExecutionCapacityService";
const logger = silentLogger();

let service: CapacityService;
let backend: QueueBackend;
let inbox: Inbox;
let outcomes: InboxOutcome[];
let tenantId: string;
let tenant: CapacityClient;

beforeAll(async () => {
  service = await startCapacity();
  backend = redisBackend({ ...testRedis(), logger });
  const observe = (outcome: InboxOutcome) => {
    if (outcome !== "retried") outcomes.push(outcome);
  };
  const { context } = service;
  inbox = startInbox({ subscriber, backend, context, handlers: handlers(context), logger, observe });
});
afterAll(async () => {
  await inbox.stop();
  await backend.queue(inboxOf(subscriber)).obliterate({ force: true });
  await backend.close();
  await service.close();
});
beforeEach(() => {
  outcomes = [];
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
});
afterEach(async () => {
  expect(await service.differences()).toEqual([]);
});

/** Delivers each under a job id of its own, as a queue does that forgot an earlier delivery, and waits for the outcomes. */
async function deliver(...events: CloudEvent[]): Promise<InboxOutcome[]> {
  outcomes = [];
  const jobs = events.map((event) => {
    const job = inboxJob(event);
    return { ...job, opts: { ...job.opts, jobId: `evt_${uuidv7()}` } };
  });
  await backend.add(inboxOf(subscriber), jobs);
  await until("every event to be taken in", 10_000, () => outcomes.length >= events.length || undefined);
  return [...outcomes].sort();
}

function event(type: string, data: CloudEvent["data"]): CloudEvent {
  const ids = { id: uuidv7(), correlationid: uuidv7() };
  return {
    ...ids,
    specversion: "1.0",
    source: "/control-plane",
    type,
    datacontenttype: "application/json",
    data,
    tenantid: tenantId,
  };
}
const attemptEnded = (attemptId: string, outcome = "ATTEMPT_OUTCOME_SUCCEEDED") =>
  event("run-control.attempts.v1.attempt-outcome-recorded", {
    ...{ runId: uuidv7(), stepId: uuidv7(), attemptId },
    outcome,
  });
const sandboxEnded = (sandboxId: string) => event("tooling.sandboxes.v1.sandbox-released", { sandboxId, tenantId });
const released = async () =>
  (await service.announced(tenantId))
    .filter(({ event: name }) => name === "CapacityLeaseReleased")
    .map(({ data }) => data);

test("ReleaseAttemptLease gives back every lease of the attempt, withdraws what it waits for, and grants to the waiter", async () => {
  const holderId = uuidv7();
  await tenant.setWorkerPool(staticPool("build", 1));
  await tenant.setWorkerPool({ ...staticPool("full", 0), kind: PoolKind.SANDBOX_HOSTS });
  const own = await Promise.all(
    ["build", "full"].map((pool) => tenant.acquireLease(attempt(pool, { holderId, ...patiently }))),
  );
  const waiter = await tenant.acquireLease(attempt("build", patiently));
  expect(await deliver(attemptEnded(holderId))).toEqual(["handled"]);
  const leases = await Promise.all(
    [...own, waiter].map(({ lease }) => tenant.getLease({ leaseId: lease?.leaseId ?? "" })),
  );
  const { RELEASED, CANCELLED, ACTIVE } = LeaseState;
  expect(leases.map(({ lease }) => lease?.state)).toEqual([RELEASED, CANCELLED, ACTIVE]);
  expect(leases[0]?.lease?.releaseReason).toBe(ReleaseReason.ATTEMPT_OUTCOME);
});

test("ReleaseAttemptLease gives back the lease whatever the outcome, one from a newer Control Plane too", async () => {
  await tenant.setWorkerPool(staticPool("build", 1));
  const holderId = uuidv7();
  const { lease } = await tenant.acquireLease(attempt("build", { holderId }));
  expect(await deliver(attemptEnded(holderId, "ATTEMPT_OUTCOME_PREEMPTED"))).toEqual(["handled"]);
  const ended = await tenant.getLease({ leaseId: lease?.leaseId ?? "" });
  expect(ended.lease?.state).toBe(LeaseState.RELEASED);
});

test("ReleaseSandboxLease has its effect once, delivered twice and told twice", async () => {
  await tenant.setWorkerPool(staticPool("build", 2));
  const holderId = uuidv7();
  await tenant.acquireLease(attempt("build", { holderId, holderKind: "Sandbox" }));
  const ended = sandboxEnded(holderId);
  expect(await deliver(ended, ended, sandboxEnded(holderId))).toEqual(["duplicate", "handled", "handled"]);
  expect(await released()).toEqual([
    {
      ...{ leaseId: expect.any(String), tenantId, holderKind: "Sandbox", holderId, poolId: "build" },
      ...{ state: "LEASE_STATE_RELEASED", executionSeconds: "0" },
    },
  ]);
});

test("refuses an acquire that comes after its holder's end, and says so", async () => {
  await tenant.setWorkerPool(staticPool("build", 2));
  const holderId = uuidv7();
  await deliver(attemptEnded(holderId));
  const late = tenant.acquireLease(attempt("build", { holderId, ...patiently }));
  await expect(late).rejects.toMatchObject({
    code: Code.FailedPrecondition,
    message: expect.stringContaining("holder-ended"),
  });
  const sandbox = tenant.acquireLease(attempt("build", { holderId, holderKind: "Sandbox" }));
  expect((await sandbox).lease?.state).toBe(LeaseState.ACTIVE);
});

test("leaves an ended holder without a lease, whichever of acquire and end comes first", async () => {
  await tenant.setWorkerPool(staticPool("build", 50));
  const holders = Array.from({ length: 12 }, () => uuidv7());
  const acquires = holders.map((holderId) => tenant.acquireLease(attempt("build", { holderId })));
  const [settled] = await Promise.all([
    Promise.allSettled(acquires),
    deliver(...holders.map((holderId) => attemptEnded(holderId))),
  ]);
  expect((await tenant.getWorkerPool({ poolId: "build" })).pool?.used).toBe(0);
  const granted = settled.filter(({ status }) => status === "fulfilled").length;
  expect(await released()).toHaveLength(granted);
});

test("leaves another tenant's holder of the same id alone", async () => {
  const holderId = uuidv7();
  const other = service.as(`other-${uuidv7()}`);
  await other.setWorkerPool(staticPool("build", 1));
  const { lease } = await other.acquireLease(attempt("build", { holderId }));
  await deliver(attemptEnded(holderId));
  expect((await other.getLease({ leaseId: lease?.leaseId ?? "" })).lease?.state).toBe(LeaseState.ACTIVE);
});
