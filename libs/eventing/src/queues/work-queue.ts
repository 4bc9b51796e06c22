import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { z } from "zod";
import { neutralFailure } from "./neutral-failure.ts";
import type { QueueBackend } from "./queue-backend.ts";

export interface WorkQueueOptions<Data> {
  /** For example `IaCProvisioningService.runs`. */
  name: string;
  backend: QueueBackend;
  concurrency: number;
  /** What a job's data must look like: a queue is no trusted input. */
  data: z.ZodType<Data>;
  /**
   * Does the work. It may be called twice for one job, even at the same time by a worker that was given up for dead:
   * whatever it writes must be guarded by its row. When `signal` aborts it stops and throws: a job that stops because its
   * worker does goes back to the queue.
   */
  handle: (data: Data, signal: AbortSignal) => Promise<unknown>;
  logger: Logger;
}

export interface WorkQueue<Data> {
  /**
   * Asks for work on `id`. While it waits, asking again changes nothing; while it is worked on, it is done once more
   * afterwards. Rejects with Unavailable when the queue is away, so the work must also be found by a sweep.
   */
  enqueue(id: string, data: Data): Promise<void>;
  /** Takes no more work, aborts what runs and waits for it, no longer than the grace. */
  close(graceMs?: number): Promise<void>;
}

const ATTEMPTS = 5;
const FIRST_RETRY_MS = 1_000;
const RETRY_JITTER = 0.5;

/** A queue of work that rows ask for, such as run executions: the row is the truth, the job says that it's time. */
export function startWorkQueue<Data>(options: WorkQueueOptions<Data>): WorkQueue<Data> {
  const { name, backend, concurrency, data: schema, handle, logger } = options;

  const worker = backend.worker(
    name,
    async (job, _token, signal) => {
      try {
        return await handle(schema.parse(job.data), signal);
      } catch (err) {
        if (!signal.aborted) logger.warn({ err, queue: name, jobId: job.id }, "work failed");
        throw neutralFailure(err);
      }
    },
    { concurrency, interruptible: true },
  );

  return {
    enqueue: (id, data) => enqueueWork(backend, name, id, data),
    close: (graceMs) => worker.close(graceMs),
  };
}

/** `WorkQueue.enqueue` for a process that asks for work and does none itself. */
export function enqueueWork(backend: QueueBackend, name: string, id: string, data: unknown): Promise<void> {
  return backend.add(name, [
    {
      name: id,
      data,
      opts: {
        deduplication: { id, keepLastIfActive: true },
        attempts: ATTEMPTS,
        backoff: { type: "exponential", delay: FIRST_RETRY_MS, jitter: RETRY_JITTER },
      },
    },
  ]);
}
