import type { Logger } from "@runtime-cloud/service-kit/logger";
import {
  type BackendFactory,
  type ConnectionOptions,
  type Job,
  type JobsOptions,
  Queue,
  type RedisQueueBackend,
} from "bullmq";
import { openWorker } from "./job-worker.ts";
import type { QueueMarks } from "./queue-marks.ts";
import { within } from "./within.ts";

export type QueueJob = Job<unknown, unknown, string>;
export type JobQueue = Queue<unknown, unknown, string>;

/** `token` is the lock that moving the job back needs; `signal` aborts when the worker stops. */
export type Process = (job: QueueJob, token: string, signal: AbortSignal) => Promise<unknown>;

export interface WorkerOptions {
  /** Jobs in work at once. */
  concurrency: number;
  /** For long jobs: `signal` aborts also when the job is lost to another worker. A price to pay for each job. */
  interruptible?: boolean;
}

export interface NewJob {
  name: string;
  data: unknown;
  opts?: JobsOptions;
}

export interface JobWorker {
  /** Takes no more jobs, aborts the running ones' signals and waits for them, no longer than the grace. */
  close(graceMs?: number): Promise<void>;
}

/**
 * Where queues live: Redis, or PostgreSQL where no Redis is. Whatever is in them may be lost at any moment; the
 * database has the truth, and a poll or a sweep finds what a queue forgot.
 */
export interface QueueBackend {
  /** Another prefix is another set of queues. */
  prefix: string;
  /**
   * Adds jobs to a queue. Rejects within seconds when the backend is away; the jobs may have been added even so, hence
   * the fixed job ids of those that mustn't be there twice.
   */
  add(queue: string, jobs: readonly NewJob[]): Promise<void>;
  /** For dashboards and re-driving. Connects by itself, and `close` closes it. */
  queue(name: string): JobQueue;
  worker(queue: string, process: Process, options: WorkerOptions): JobWorker;
  /**
   * Throws for a backend that may drop jobs, saying how to set it right. One that is away is no error, since services
   * start in any order.
   */
  check(): Promise<"ready" | "away">;
  /** Absent where the queues are as durable as the database. */
  marks?: QueueMarks;
  /** Closes every worker, then every queue, within the grace. */
  close(graceMs?: number): Promise<void>;
}

/** What `redis-backend.ts` and `postgres-backend.ts` make a backend of. */
export interface BackendParts {
  factory: BackendFactory<RedisQueueBackend, ConnectionOptions>;
  producer: ConnectionOptions;
  consumer: ConnectionOptions;
  prefix: string;
  logger: Logger;
  check: QueueBackend["check"];
  /** How long a queue's first use may wait for its connection. */
  connectMs?: number;
}

const CONNECT_MS = 2_000;
const ADD_MS = 5_000;
const GRACE_MS = 10_000;
const DISCONNECT_MS = 1_000;

export function queueBackend(parts: BackendParts): QueueBackend {
  const { factory, producer, consumer, prefix, logger, check, connectMs = CONNECT_MS } = parts;
  const queues = new Map<string, JobQueue>();
  const workers: JobWorker[] = [];

  function queue(name: string): JobQueue {
    const open = queues.get(name);
    if (open) return open;
    const made: JobQueue = new Queue(name, { connection: producer, prefix }, factory);
    made.on("error", (err) => logger.debug({ err, queue: name }, "queue connection failed"));
    // BullMQ remembers a failed first exchange for good: whoever comes next gets a new connection.
    made.waitUntilReady().catch(() => {
      if (queues.get(name) === made) queues.delete(name);
      void closeQueue(made, logger);
    });
    queues.set(name, made);
    return made;
  }

  return {
    prefix,
    queue,
    check,
    async add(name, jobs) {
      const target = queue(name);
      await within(connectMs, target.waitUntilReady(), `queue ${name} is out of reach`);
      await within(ADD_MS, addTo(target, jobs), `queue ${name} doesn't answer`);
    },
    worker(name, process, options) {
      const worker = openWorker(name, process, { factory, connection: consumer, prefix, options, logger });
      workers.push(worker);
      return worker;
    },
    async close(graceMs = GRACE_MS) {
      await Promise.all(workers.map((worker) => worker.close(graceMs)));
      await Promise.all([...queues.values()].map((open) => closeQueue(open, logger, graceMs)));
    },
  };
}

/** One job alone is one command, without the transaction around several. */
async function addTo(queue: JobQueue, jobs: readonly NewJob[]): Promise<void> {
  const [job, ...more] = jobs;
  if (job && more.length === 0) await queue.add(job.name, job.data, job.opts);
  else await queue.addBulk([...jobs]);
}

async function closeQueue(queue: JobQueue, logger: Logger, graceMs = GRACE_MS): Promise<void> {
  try {
    await within(graceMs, queue.close(), `queue ${queue.name} doesn't close`);
  } catch (err) {
    logger.debug({ err }, "queue connection dropped");
    // One that can't say goodbye would go on reconnecting.
    await within(DISCONNECT_MS, queue.disconnect(), `queue ${queue.name} doesn't let go`).catch(() => undefined);
  }
}
