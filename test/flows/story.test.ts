import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventOnTopic } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { playStory } from "@runtime-cloud/runtime-cloud-host/story/story";
import type pg from "pg";
import { deploy, type TestDeployment } from "../_support/deployment.ts";

const SERVICES = ["runtime-environment", "execution-capacity", "iac-provisioning"] as const;
const SUBSCRIBERS = ["IaCProvisioningService", "ExecutionCapacityService", "RuntimeEnvironmentService"];
const START_MS = 60_000;
const STORY_MS = 150_000;
const AGAIN_MS = 60_000;

let deployment: TestDeployment;
const told: string[] = [];

beforeAll(async () => {
  deployment = await deploy(SERVICES, (line) => told.push(line));
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test(
  "three service processes play the whole loop, each step as the story promises",
  async () => {
    try {
      await playStory(deployment.stage);
    } catch (error) {
      throw new Error(`${told.join("\n")}\n${String(error)}`, { cause: error });
    }
  },
  STORY_MS,
);

test(
  "every event delivered twice more, and backwards, changes nothing",
  async () => {
    const { databases, controlPlane } = deployment.stage;
    const pools = Object.values(databases);
    const published = (await Promise.all(pools.map(outbox))).flat();
    const events = [...published, ...controlPlane.announced()].reverse();
    const effects = await Promise.all(pools.map(effectsIn));
    expect(events.length).toBeGreaterThan(SERVICES.length);

    for (const round of ["again", "and-again"]) {
      for (const event of events) await deliver(event, round);
    }
    for (const subscriber of SUBSCRIBERS) {
      const queue = deployment.backend.queue(inboxOf(subscriber));
      await eventually(`an empty ${queue.name}`, async () => {
        const open = await queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized");
        return open === 0 ? true : undefined;
      });
      expect(await queue.getFailedCount()).toBe(0);
    }
    expect(await Promise.all(pools.map(effectsIn))).toEqual(effects);
  },
  AGAIN_MS,
);

/** Under another job id, since the queue would ignore the same one. */
async function deliver(event: CloudEvent, round: string): Promise<void> {
  const readers = eventOnTopic(event.type)?.consumers.filter((consumer) => SUBSCRIBERS.includes(consumer)) ?? [];
  const job = inboxJob(event);
  for (const reader of readers) {
    const again = { ...job, opts: { ...job.opts, jobId: `evt_${event.id}_${round}` } };
    await deployment.backend.add(inboxOf(reader), [again]);
  }
}

async function outbox(pool: pg.Pool): Promise<CloudEvent[]> {
  const { rows } = await pool.query<{ envelope: CloudEvent }>("SELECT envelope FROM outbox_message ORDER BY position");
  return rows.map(({ envelope }) => envelope);
}

/** What events can have changed: receipts, and every transition but an observation's, which time makes too. */
async function effectsIn(pool: pg.Pool) {
  const { rows } = await pool.query<{ receipts: number; transitions: number; announced: number }>(
    `SELECT (SELECT count(*)::int FROM inbox_receipt) AS receipts,
            (SELECT count(*)::int FROM transition WHERE event <> 'observe') AS transitions,
            (SELECT count(*)::int FROM outbox_message WHERE topic NOT LIKE '%observed-state-changed') AS announced`,
  );
  return rows[0];
}
