import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { until } from "@runtime-cloud/local-servers/until";
import { Queue, Worker } from "bullmq";
import project from "../../package.json" with { type: "json" };
import { portions } from "./committed.ts";
import { Ledger } from "./ledger.ts";
import type { Path } from "./path.ts";

const QUEUE = "raw";
const PREFIX = "{bench-raw}";
/** As many jobs an `addBulk` as the relay has, so that the worker begins as early. */
const JOBS_PER_ADD = 500;
/** As our inbox has. */
const CONCURRENCY = 128;
const COMPLETED_WITHIN_MS = 10_000;

/**
 * BullMQ with its defaults and nothing around it: no outbox, no receipt, a worker that does nothing. It counts from the
 * first `add` or `addBulk`.
 */
export function openBullmqPath(redisUrl: string): Path {
  const ledger = new Ledger();
  const connection = { url: redisUrl };
  const queue: EventQueue = new Queue(QUEUE, { connection, prefix: PREFIX });
  const worker = new Worker<CloudEvent, undefined, string>(
    QUEUE,
    async ({ data }) => {
      ledger.started(data.id);
      ledger.done();
    },
    { connection, prefix: PREFIX, concurrency: CONCURRENCY },
  );
  queue.on("error", (error) => ledger.wrong(error.message));
  worker.on("error", (error) => ledger.wrong(error.message));

  return {
    name: "bullmq",
    about: `${project.dependencies.bullmq}: a worker of concurrency ${CONCURRENCY} that does nothing, no receipt`,
    ledger,
    async send(events) {
      const adding = performance.now();
      const jobs = events.map((event) => ({ name: event.type, data: event }));
      for (const some of portions(jobs, JOBS_PER_ADD)) await addSome(queue, some);
      return adding;
    },
    async check(eventIds) {
      ledger.check(eventIds);
      await until(`${eventIds.length} completed jobs and no other`, COMPLETED_WITHIN_MS, async () => {
        const { completed, ...others } = await queue.getJobCounts("completed", "waiting", "active", "failed");
        return (completed === eventIds.length && Object.values(others).every((count) => count === 0)) || undefined;
      });
      await queue.clean(0, 0, "completed");
    },
    async close() {
      await worker.close();
      await queue.close();
    },
  };
}

async function addSome(queue: EventQueue, jobs: readonly { name: string; data: CloudEvent }[]): Promise<void> {
  const [first, ...more] = jobs;
  if (first !== undefined && more.length === 0) await queue.add(first.name, first.data);
  else await queue.addBulk([...jobs]);
}

type EventQueue = Queue<CloudEvent, undefined, string>;
