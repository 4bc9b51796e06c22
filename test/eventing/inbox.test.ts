import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { type CloudEvent, decode } from "@runtime-cloud/contracts/events/cloud-event";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { AttemptOutcomeRecordedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import { SandboxReleasedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/tooling_pb";
import { type EventHandler, on } from "@runtime-cloud/eventing/event-handler";
import { type Inbox, type InboxOutcome, startInbox } from "@runtime-cloud/eventing/inbox";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { redriveParked } from "@runtime-cloud/eventing/event-log/redrive";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { testRedis } from "../_support/redis.ts";
import { createQuota } from "./quotas.ts";
import { attemptRecorded, sandboxReleased } from "./control-plane-events.ts";
import { openServiceDatabase, type ServiceDatabase, type Tx } from "./service-database.ts";

const subscriber = "ExecutionCapacityService";
const logger = silentLogger();

let database: ServiceDatabase;
let backend: QueueBackend;
let inbox: Inbox | undefined;
let outcomes: InboxOutcome[];

beforeAll(async () => {
  database = await openServiceDatabase();
});
afterAll(() => database.close());
beforeEach(() => {
  outcomes = [];
  backend = redisBackend({ ...testRedis(), logger });
});
afterEach(async () => {
  await inbox?.stop();
  await backend.queue(inboxOf(subscriber)).obliterate({ force: true });
  await backend.close();
});

function take(...handlers: EventHandler<Tx>[]) {
  const observe = (outcome: InboxOutcome) => void outcomes.push(outcome);
  inbox = startInbox({ subscriber, backend, context: database.context, handlers, logger, observe });
}

/** Delivers under a job id of its own, as a queue does that forgot the first delivery. */
function deliver(event: CloudEvent, opts = {}) {
  const job = inboxJob(event);
  return backend.add(inboxOf(subscriber), [{ ...job, opts: { ...job.opts, jobId: `evt_${uuidv7()}`, ...opts } }]);
}

const outcome = (count: number) =>
  until(`${count} outcomes`, 10_000, () => (outcomes.length >= count ? outcomes : undefined));

/** However often one was tried again in between. */
const handled = (count: number) =>
  until(`${count} handled`, 20_000, () => outcomes.filter((each) => each === "handled").length === count || undefined);

/** An effect that can be counted: one quota for the tenant that the sandbox's id names. */
const countSandbox: EventHandler<Tx> = on(SandboxReleasedSchema, "CountSandbox", async (unit, { sandboxId }) => {
  await createQuota(unit, sandboxId);
});
const sandboxOf = (event: CloudEvent) => decode(SandboxReleasedSchema, event).sandboxId;
const effects = (tenantId: string) => database.client.quota.count({ where: { tenantId } });

test("gives a handler its typed message, and its effect the event as its cause", async () => {
  const attemptId = uuidv7();
  const event = attemptRecorded({ attemptId });
  take(
    on(AttemptOutcomeRecordedSchema, "Note", async (unit, message, envelope) => {
      await createQuota(unit, message.attemptId);
      expect(envelope.id).toBe(event.id);
    }),
  );
  await deliver(event);
  expect(await outcome(1)).toEqual(["handled"]);
  expect(await database.client.transition.findFirst({ where: { tenantId: attemptId } })).toMatchObject({
    actor: "event:Note",
    causationId: event.id,
    correlationId: event.correlationid,
  });
});

test("has the effect of an event once, however often it is delivered, one after the other and at once", async () => {
  const event = sandboxReleased();
  take(countSandbox);
  await Promise.all([1, 2, 3, 4].map(() => deliver(event)));
  await outcome(4);
  await deliver(event);
  expect([...(await outcome(5))].sort()).toEqual(["duplicate", "duplicate", "duplicate", "duplicate", "handled"]);
  expect(await effects(sandboxOf(event))).toBe(1);
});

test("gives every handler of a topic the event, and repeats only the one that failed", async () => {
  const event = sandboxReleased();
  let tries = 0;
  take(
    countSandbox,
    on(SandboxReleasedSchema, "FailFirst", async () => {
      tries += 1;
      // Once together with the other, once alone.
      if (tries <= 2) throw new Error("not yet");
    }),
  );
  await deliver(event);
  expect(await outcome(2)).toEqual(["retried", "handled"]);
  expect(tries).toBe(3);
  expect(await effects(sandboxOf(event))).toBe(1);
  expect(await database.client.inboxReceipt.count({ where: { eventId: event.id } })).toBe(2);
});

test("takes in together what comes together; one that fails takes no other with it", async () => {
  const events = Array.from({ length: 40 }, () => sandboxReleased());
  const poison = events[20]?.id;
  take(
    on(SandboxReleasedSchema, "CountSandbox", async (unit, { sandboxId }, { id }) => {
      if (id === poison) throw new Error("this one never works");
      await createQuota(unit, sandboxId);
    }),
  );
  await backend.add(
    inboxOf(subscriber),
    events.map((event) => ({ ...inboxJob(event), opts: { attempts: 1 } })),
  );
  expect([...(await outcome(40))].sort()).toEqual([...Array<string>(39).fill("handled"), "parked"]);
  const counts = await Promise.all(events.map((event) => effects(sandboxOf(event))));
  expect(counts).toEqual(events.map(({ id }) => (id === poison ? 0 : 1)));
  const [{ transactions } = { transactions: 40 }] = await database.client.$queryRaw<{ transactions: number }[]>`
    SELECT count(DISTINCT xmin::text)::int AS transactions FROM inbox_receipt
    WHERE event_id = ANY(${events.map(({ id }) => id)}::uuid[])`;
  expect(transactions).toBeLessThan(39);
});

test("goes on with the others while a row that one of them needs is locked", async () => {
  const events = [1, 2, 3, 4, 5, 6].map(() => sandboxReleased());
  const stuck = events[1]?.id;
  const { id: quotaId } = await database.client.quota.findFirstOrThrow();
  take(
    on(SandboxReleasedSchema, "CountSandbox", async (unit, { sandboxId }, { id }) => {
      if (id === stuck) await unit.tx.$queryRaw`SELECT FROM quota WHERE id = ${quotaId}::uuid FOR UPDATE`;
      await createQuota(unit, sandboxId);
    }),
  );
  const held = await database.pool.connect();
  try {
    await held.query("BEGIN");
    await held.query("SELECT FROM quota WHERE id = $1 FOR UPDATE", [quotaId]);
    await backend.add(inboxOf(subscriber), events.map(inboxJob));
    await handled(5);
  } finally {
    await held.query("COMMIT");
    held.release();
  }
  await handled(6);
  expect(await Promise.all(events.map((event) => effects(sandboxOf(event))))).toEqual([1, 1, 1, 1, 1, 1]);
});

test("takes events in whatever order they come", async () => {
  const seen: number[] = [];
  take(
    on(SandboxReleasedSchema, "Newest", async (_unit, _message, { aggregateversion = 0 }) => {
      seen.push(aggregateversion);
    }),
  );
  const [older, newer] = [sandboxReleased({}, { aggregateversion: 1 }), sandboxReleased({}, { aggregateversion: 2 })];
  await deliver(newer);
  await outcome(1);
  await deliver(older);
  await outcome(2);
  expect(seen).toEqual([2, 1]);
});

test("parks a malformed event at once, says which field is wrong, and goes on", async () => {
  take(countSandbox);
  const fine = sandboxReleased();
  await deliver({ ...sandboxReleased(), tenantid: "" });
  await deliver(sandboxReleased({ sandboxId: "no-uuid" }));
  await deliver(fine);
  expect([...(await outcome(3))].sort()).toEqual(["handled", "parked", "parked"]);
  expect(await effects(sandboxOf(fine))).toBe(1);

  const parked = await until("two parked", 15_000, async () => {
    const jobs = await backend.queue(inboxOf(subscriber)).getFailed();
    return jobs.length === 2 ? jobs : undefined;
  });
  const reasons = parked.map(({ failedReason }) => failedReason).join("\n");
  expect(reasons).toMatch(/tenantid: /);
  expect(reasons).toMatch(/SandboxReleased breaks its rules: sandbox_id/);
});

test("parks an event that keeps failing, tells no driver's text, and redrives it with one effect", async () => {
  let healthy = false;
  take(
    on(SandboxReleasedSchema, "Recovers", async (unit, { sandboxId }) => {
      await createQuota(unit, sandboxId);
      if (!healthy) throw new Error('relation "secret_table" does not exist');
    }),
  );
  const [event, other] = [sandboxReleased(), sandboxReleased()];
  await deliver(event, { attempts: 2, backoff: { type: "fixed", delay: 10 } });
  expect(await outcome(2)).toEqual(["retried", "parked"]);
  const queue = backend.queue(inboxOf(subscriber));
  const [parked] = await until("it is parked", 15_000, async () => {
    const jobs = await queue.getFailed();
    return jobs.length > 0 ? jobs : undefined;
  });
  expect(parked?.failedReason).toMatch(/^internal error/);
  expect(await effects(sandboxOf(event))).toBe(0);

  healthy = true;
  await deliver(other);
  expect(await outcome(3)).toEqual(["retried", "parked", "handled"]);
  expect(await redriveParked(queue)).toBe(1);
  expect(await outcome(4)).toEqual(["retried", "parked", "handled", "handled"]);
  expect(await effects(sandboxOf(event))).toBe(1);
  expect(await queue.getFailedCount()).toBe(0);
});

test("acknowledges an event that nobody here handles", async () => {
  take(countSandbox);
  await deliver(attemptRecorded());
  await deliver({ ...attemptRecorded(), type: "weather.reports.v1.rain-fell" });
  expect(await outcome(2)).toEqual(["unknown", "unknown"]);
  expect(await backend.queue(inboxOf(subscriber)).getFailedCount()).toBe(0);
});
