import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { MalformedEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { EventHandler } from "@runtime-cloud/eventing/event-handler";
import { redriveParked } from "@runtime-cloud/eventing/event-log/redrive";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import pg from "pg";
import type { Tx } from "../eventing/service-database.ts";
import { testDatabase, type TestDatabase } from "../_support/database.ts";
import { type EventPath, openEventPath, READER, TAKER } from "../_support/event-path.ts";
import { testRedis } from "../_support/redis.ts";

const TEST_MS = 300_000;
const CAUGHT_UP_MS = 240_000;
const EVENTS = 10_000;
const QUOTAS = 1_000;
/** One in a hundred; of those, one in twenty throws at each try, and the others can't be read. */
const POISONED = EVENTS / 100;
const UNREADABLE = 13;
const THROWING = 14;

let database: TestDatabase;
let path: EventPath;
let mended = false;

beforeAll(async () => {
  database = await testDatabase("execution-capacity");
  path = await openEventPath({
    databaseUrl: database.url,
    redis: testRedis(),
    handler: (own) => poisoned(own.handler),
  });
});
afterAll(async () => {
  await path.close();
  await database.drop();
});

/** Until it is mended, a handler that some events are too much for, one kind of them after its effect. */
function poisoned(handler: EventHandler<Tx>): EventHandler<Tx> {
  return {
    ...handler,
    prepare(event) {
      const { concurrentRuns } = event.data;
      if (!mended && concurrentRuns === UNREADABLE) throw new MalformedEvent("a quota that this release can't read");
      const work = handler.prepare(event);
      return async (unit) => {
        await work(unit);
        if (!mended && concurrentRuns === THROWING) throw new Error("thirteen and one");
      };
    },
  };
}

test(
  "10,000 events with 1 % poisoned: these are parked, the others take effect, and so do these once redriven",
  async () => {
    const queue = path.backend.queue(inboxOf(TAKER));
    await writeEvents();
    await eventually(
      "the poisoned events parked, the others handled",
      async () => {
        const counts = await queue.getJobCounts("waiting", "active", "delayed", "failed");
        // The waits between the tries of those that throw are cut short.
        if (counts["delayed"]) await queue.promoteJobs();
        const published = (await path.backend.queue(inboxOf(READER)).getWaitingCount()) === EVENTS;
        if (published && counts["failed"] === POISONED && !counts["waiting"] && !counts["active"]) return true;
        throw new Error(JSON.stringify(counts));
      },
      CAUGHT_UP_MS,
    );
    expect(new Set(await path.ledger.effects()).size).toBe(EVENTS - POISONED);

    mended = true;
    expect(await redriveParked(queue)).toBe(POISONED);
    expect(await path.broken()).toEqual([]);
    expect(await queue.getFailedCount()).toBe(0);
  },
  TEST_MS,
);

/** Some versions of each quota, in no order, as if many commands had announced them. */
async function writeEvents(): Promise<void> {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  await pool.query(
    `INSERT INTO outbox_message (id, topic, tenant_id, subject, envelope)
     SELECT id, 'capacity.quotas.v1.quota-changed', 'tenant', quota, jsonb_build_object(
       'specversion', '1.0', 'id', id, 'source', '/runtime-cloud/ExecutionCapacityService',
       'type', 'capacity.quotas.v1.quota-changed', 'subject', quota, 'datacontenttype', 'application/json',
       'tenantid', 'tenant', 'aggregateversion', version,
       'data', jsonb_build_object('quotaId', quota, 'tenantId', 'tenant', 'concurrentSandboxes', 1, 'concurrentRuns',
         CASE WHEN n % 100 <> 0 THEN 1 WHEN n % 2000 = 0 THEN $3::int ELSE $4::int END))
     FROM (SELECT gen_random_uuid() AS quota, number FROM generate_series(1, $2::int) AS number) AS quotas
     CROSS JOIN LATERAL (
       SELECT gen_random_uuid() AS id, version, (number - 1) * ($1::int / $2::int) + version AS n
       FROM generate_series(1, $1::int / $2::int) AS version) AS events
     ORDER BY random()`,
    [EVENTS, QUOTAS, THROWING, UNREADABLE],
  );
  await pool.end();
}
