import { setMaxListeners } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import { PARKED_DAYS } from "@runtime-cloud/service-kit/settings";
import {
  type BackendFactory,
  type ConnectionOptions,
  DelayedError,
  type Processor,
  type RedisQueueBackend,
  UnrecoverableError,
  WaitingError,
  Worker,
} from "bullmq";
import type { JobWorker, Process, QueueJob, WorkerOptions } from "./queue-backend.ts";
import { within } from "./within.ts";
import { WorkerStopping } from "./worker-stopping.ts";

/** A job whose worker died is taken up by another within the lock's and two stall checks' time. */
const LOCK_MS = 15_000;
const STALL_CHECK_MS = 5_000;
/** A dying process is no fault of its jobs. Only a job that takes worker after worker with it is parked. */
const MAX_STALLS = 20;
const MAX_STARTS = 40;
const KEEP_DONE = { age: 24 * 3_600, count: 1_000 };
const KEEP_FAILED = { age: PARKED_DAYS * 24 * 3_600, count: 10_000 };
const GRACE_MS = 10_000;
const DISCONNECT_MS = 1_000;
const REOPEN_MS = 1_000;

export interface WorkerParts {
  factory: BackendFactory<RedisQueueBackend, ConnectionOptions>;
  connection: ConnectionOptions;
  prefix: string;
  options: WorkerOptions;
  logger: Logger;
}

/** Starts a worker; it connects by itself, now or whenever the backend is there. */
export function openWorker(queue: string, process: Process, parts: WorkerParts): JobWorker {
  const { factory, connection, prefix, logger } = parts;
  const { concurrency, interruptible = false } = parts.options;
  const stopping = new AbortController();
  // Each interruptible job that runs listens to it.
  setMaxListeners(0, stopping.signal);
  const run = async (job: QueueJob, token: string | undefined, work: (token: string) => Promise<unknown>) => {
    if (stopping.signal.aborted) return giveBack(job, token);
    try {
      return await work(token ?? "");
    } catch (error) {
      if (stopping.signal.aborted && !isFinal(error)) return giveBack(job, token);
      throw error;
    }
  };
  // BullMQ counts the declared parameters: it makes a signal only for a processor with three, none optional.
  const plain: Processor<unknown, unknown, string> = (job, token) =>
    run(job, token, (lock) => process(job, lock, stopping.signal));
  const withSignal: Processor<unknown, unknown, string> = (job, token, lost) =>
    run(job, token, (lock) =>
      abortable(lost ? [lost, stopping.signal] : [stopping.signal], (signal) => process(job, lock, signal)),
    );
  let connected = false;
  let worker: BullWorker = open();

  function open(): BullWorker {
    const made: BullWorker = new Worker(
      queue,
      interruptible ? withSignal : plain,
      {
        connection,
        prefix,
        concurrency,
        lockDuration: LOCK_MS,
        stalledInterval: STALL_CHECK_MS,
        maxStalledCount: MAX_STALLS,
        maxStartedAttempts: MAX_STARTS,
        removeOnComplete: KEEP_DONE,
        removeOnFail: KEEP_FAILED,
      },
      factory,
    );
    made.on("error", (err) => logger.debug({ err, queue }, "worker connection failed"));
    made.on("stalled", (jobId) => logger.warn({ queue, jobId }, "job of a lost worker taken up again"));
    made.waitUntilReady().then(
      () => (connected = true),
      (err: unknown) => replace(made, err),
    );
    return made;
  }

  /** BullMQ remembers a failed first connection for good, and would ask it for jobs without ever pausing. */
  async function replace(failed: BullWorker, err: unknown): Promise<void> {
    logger.debug({ err, queue }, "worker never connected");
    await within(DISCONNECT_MS, failed.close(true), "worker doesn't let go").catch(() => undefined);
    await wait(REOPEN_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    if (!stopping.signal.aborted) worker = open();
  }

  let closed: Promise<void> | undefined;
  return {
    close(graceMs = GRACE_MS) {
      return (closed ??= close(graceMs));
    },
  };

  async function close(graceMs: number): Promise<void> {
    stopping.abort(new WorkerStopping());
    try {
      // One that never connected would wait for its connection first, unless it's forced.
      await within(graceMs, worker.close(!connected), "jobs outlived the grace");
    } catch (err) {
      logger.warn({ err, queue }, "worker dropped: what it didn't finish is taken up when its lock ends");
    }
    // A connection that can't say goodbye, since Redis is away, would go on reconnecting.
    if (connected) await within(DISCONNECT_MS, worker.disconnect(), "worker doesn't let go").catch(() => undefined);
  }
}

/** For another worker, without a try being counted. */
async function giveBack(job: QueueJob, token: string | undefined): Promise<never> {
  await job.moveToWait(token);
  throw new WaitingError();
}

/** The job has its place already, or shall have no other try. */
function isFinal(error: unknown): boolean {
  return error instanceof DelayedError || error instanceof UnrecoverableError;
}

/** What AbortSignal.any is for; Node 20's lets the signal that it made be collected while somebody listens to it. */
async function abortable<T>(signals: readonly AbortSignal[], work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const any = new AbortController();
  const over = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) any.abort(signal.reason);
    signal.addEventListener("abort", () => any.abort(signal.reason), { signal: over.signal });
  }
  try {
    return await work(any.signal);
  } finally {
    over.abort();
  }
}

type BullWorker = Worker<unknown, unknown, string>;
