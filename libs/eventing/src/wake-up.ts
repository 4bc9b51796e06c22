import { z } from "zod";
import type { NewJob } from "./queues/queue-backend.ts";

/** What a deadline's job says. The label is for whoever looks at the dashboard: nothing is decided by it. */
export type WakeUp = z.output<typeof wakeUpSchema>;

const wakeUpSchema = z.object({
  kind: z.string().min(1),
  instant: z.iso.datetime().transform((text) => new Date(text)),
  label: z.record(z.string(), z.string()).optional(),
});

const SECOND_MS = 1_000;
const ATTEMPTS = 4;
const FIRST_RETRY_MS = 500;

/** The end of the second in which `at` falls: everything due within it shares one wake-up. */
export function bucketOf(at: Date): Date {
  return new Date(Math.ceil(at.getTime() / SECOND_MS) * SECOND_MS);
}

export function wakeUpId(kind: string, bucket: Date): string {
  return `due_${kind}_${bucket.getTime() / SECOND_MS}`;
}

export function wakeUpJob(kind: string, bucket: Date, delayMs: number, label?: Record<string, string>): NewJob {
  return {
    name: kind,
    data: { kind, instant: bucket.toISOString(), ...(label && { label }) },
    opts: {
      jobId: wakeUpId(kind, bucket),
      delay: delayMs,
      attempts: ATTEMPTS,
      backoff: { type: "exponential", delay: FIRST_RETRY_MS },
    },
  };
}

export function readWakeUp(data: unknown): WakeUp {
  return wakeUpSchema.parse(data);
}
