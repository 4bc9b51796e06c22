import { Queue, Worker } from "bullmq";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { portions } from "../events/committed.ts";
import type { Contestant, Round } from "../rounds.ts";
import type { CapacityService } from "./capacity-service.ts";
import { expiry, type HeldLease } from "./desk-operations.ts";
import { reach } from "./instants.ts";
import type { StormSizes } from "./storm.ts";
import { allEnded, checkExpired, prepareStorm } from "./storm-leases.ts";

const QUEUE = "lease-ends";
const PREFIX = "{bench-lease-ends}";
const JOBS_PER_ADD = 1_000;
const SECOND_MS = 1_000;
/** What the adding of the jobs takes at least, so that none is due before it is there. */
const JOBS_PER_SECOND = 4_000;
export const JOB_CONCURRENCY = 32;

/** A delayed job for each lease, which ends it at the same desk, by itself; `service` does nothing by time. */
export function stormOfJobs(service: CapacityService, redisUrl: string, sizes: StormSizes): Contestant {
  return { name: "bullmq", round: () => play(service, redisUrl, sizes) };
}

async function play(
  service: CapacityService,
  redisUrl: string,
  { leases: counts, tenants }: StormSizes,
): Promise<Round> {
  const { aside, desk } = service;
  const quietMs = SECOND_MS + (counts.bullmq / JOBS_PER_SECOND) * SECOND_MS;
  const storm = await prepareStorm(aside, {
    count: counts.bullmq,
    tenants,
    quietMs,
    over: async () => undefined,
  });
  const connection = { url: redisUrl };
  const queue: LeaseQueue = new Queue(QUEUE, { connection, prefix: PREFIX });
  const failures: Error[] = [];
  const worker = new Worker<HeldLease, undefined, string>(
    QUEUE,
    async ({ data }) => {
      const [ended] = await desk.expire([expiry(data)]);
      if (ended?.status === "rejected") throw ended.reason;
      return undefined;
    },
    { connection, prefix: PREFIX, concurrency: JOB_CONCURRENCY },
  );
  queue.on("error", (error) => failures.push(error));
  worker.on("error", (error) => failures.push(error));
  worker.on("failed", (_, error) => failures.push(error));
  try {
    for (const some of portions(storm.leases, JOBS_PER_ADD)) {
      const delay = storm.due.getTime() - systemClock.now().getTime();
      await queue.addBulk(some.map(({ id, tenantId }) => ({ name: "end", data: { id, tenantId }, opts: { delay } })));
    }
    const due = await reach(storm.due);
    const ended = await allEnded(aside, storm);
    if (failures[0]) throw failures[0];
    return {
      figures: { expired_per_second: counts.bullmq / ((ended - due) / SECOND_MS) },
      check: () => checkExpired(service, storm),
    };
  } finally {
    await worker.close();
    await queue.obliterate();
    await queue.close();
  }
}

type LeaseQueue = Queue<HeldLease, undefined, string>;
