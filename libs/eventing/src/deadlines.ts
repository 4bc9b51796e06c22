import type { Clock } from "@runtime-cloud/service-kit/clock";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import { DelayedError } from "bullmq";
import { neutralFailure } from "./queues/neutral-failure.ts";
import type { QueueBackend, QueueJob } from "./queues/queue-backend.ts";
import { recentlySeen } from "./recently-seen.ts";
import { type SerialRun, serialRun } from "./serial-run.ts";
import { startSweep } from "./sweep.ts";
import { bucketOf, type Label, readWakeUp, wakeUpId, wakeUpJob } from "./wake-up.ts";

/** One kind of thing that ends by time. Its instants are columns; a wake-up only says that some may have come. */
export interface Deadline {
  /** For example `lease-expiry`. */
  kind: string;
  /** How late it may be when the queue forgot. */
  sweepEveryMs: number;
  /** How long the sweep leaves what is due to its wake-up. */
  graceMs?: number;
  /**
   * Ends what is due by the database's clock, a batch at most; with a label, only that part of it. Called too early, or
   * twice, it finds nothing. What has been due for less than `graceMs` is left alone.
   */
  run(label?: Label, graceMs?: number): Promise<DeadlineResult>;
}

export interface DeadlineResult {
  /** Ids of what ended; the job keeps them as its result, so the dashboard shows them. */
  ended: readonly string[];
  /** More is due than a batch holds: `run` is called again at once. */
  more?: boolean;
}

export interface DeadlinesOptions {
  /** Names the queue: `<service>.deadlines`. */
  service: string;
  backend: QueueBackend;
  deadlines: readonly Deadline[];
  logger: Logger;
  clock: Clock;
  /** The database's clock, as `database-clock.ts` reads it. */
  databaseNow: () => Promise<Date>;
  /** Source of the sweeps' jitter, from 0 to 1. */
  random?: () => number;
  /** Told of every wake-up that was on time or late, for metrics. */
  observe?: (kind: string, measured: { latenessMs: number; ended: number }) => void;
}

export interface Deadlines {
  /**
   * Asks for a wake-up at the end of the second in which `at` falls, or now if it has passed: one for each label, which
   * says where something is due. Never rejects: what no queue wakes, the sweep finds. Call it after the commit.
   */
  arm(kind: string, at: Date, label?: Label): Promise<void>;
  /** Takes no more wake-ups and ends the sweeps; waits for the runs under way. */
  stop(): Promise<void>;
}

/** Seconds that this process armed: arming one again costs nothing. */
const REMEMBERED = 10_000;
const CONCURRENCY = 4;
const NO_INSTANT = new Date(0);
/** How many ids a job's result shows. */
const MAX_SHOWN = 200;

/** The queue of a service's deadlines. */
export function deadlinesOf(service: string): string {
  return `${service}.deadlines`;
}

/** Wakes a service for its deadlines: by delayed jobs, to the second; and by a sweep, for what they missed. */
export function startDeadlines(options: DeadlinesOptions): Deadlines {
  const { service, backend, deadlines, logger, clock, databaseNow, random = Math.random, observe } = options;
  const queue = deadlinesOf(service);
  const armed = recentlySeen(REMEMBERED);
  const runs = new Map<string, SerialRun<string[]>>();
  const worker = backend.worker(queue, onWakeUp, { concurrency: CONCURRENCY });
  const sweeps = deadlines.map(({ kind, sweepEveryMs, graceMs }) =>
    startSweep({ everyMs: sweepEveryMs, random, run: () => endDueNow(kind, undefined, graceMs) }),
  );

  async function onWakeUp(job: QueueJob, token: string): Promise<unknown> {
    const { kind, instant, label } = readWakeUp(job.data);
    const deadline = deadlines.find((known) => known.kind === kind);
    if (!deadline) return "left to the version that knows this kind";
    const earlyMs = instant.getTime() - (await databaseNow()).getTime();
    if (earlyMs > 0) {
      // The waking clock runs ahead of the database's. The same job goes back, so its id still stands for the second.
      await job.moveToDelayed(clock.now().getTime() + earlyMs, token);
      throw new DelayedError();
    }
    try {
      const ended = await endDue(deadline, label);
      observe?.(kind, { latenessMs: -earlyMs, ended: ended.length });
      return { ended: ended.slice(0, MAX_SHOWN), count: ended.length };
    } catch (err) {
      logger.warn({ err, kind }, "deadline failed; it is tried again");
      throw neutralFailure(err);
    }
  }

  /** Runs of different labels go side by side. */
  async function endDue(deadline: Deadline, label?: Label, graceMs?: number): Promise<string[]> {
    const key = `${wakeUpId(deadline.kind, NO_INSTANT, label)} ${graceMs ?? 0}`;
    const run = runs.get(key) ?? serialRun(() => endAllDue(deadline, label, graceMs));
    runs.set(key, run);
    const ended = await run.run();
    if (!run.busy()) runs.delete(key);
    return ended;
  }

  async function endDueNow(kind: string, label?: Label, graceMs?: number): Promise<void> {
    try {
      const deadline = deadlines.find((known) => known.kind === kind);
      const ended = deadline && (await endDue(deadline, label, graceMs));
      if (ended && ended.length > 0) logger.info({ kind, ended: ended.length }, "sweep ended what no wake-up did");
    } catch (err) {
      logger.warn({ err, kind }, "sweep failed; the next one tries again");
    }
  }

  return {
    async arm(kind, at, label) {
      const bucket = bucketOf(at);
      const id = wakeUpId(kind, bucket, label);
      const delayMs = bucket.getTime() - clock.now().getTime();
      if (delayMs <= 0) return endDueNow(kind, label);
      if (!armed.add(id)) return;
      try {
        await backend.add(queue, [wakeUpJob(kind, bucket, delayMs, label)]);
      } catch (err) {
        armed.forget(id);
        logger.warn({ err, kind }, "wake-up not armed; the sweep finds what is due");
      }
    },
    async stop() {
      await Promise.all([worker.close(), ...sweeps.map((sweep) => sweep.stop())]);
      await Promise.all([...runs.values()].map((run) => run.idle()));
    },
  };
}

async function endAllDue(deadline: Deadline, label: Label | undefined, graceMs: number | undefined): Promise<string[]> {
  const ended: string[] = [];
  for (let more = true; more;) {
    const result = await deadline.run(label, graceMs);
    ended.push(...result.ended);
    more = result.more ?? false;
  }
  return ended;
}
