import { createHash } from "node:crypto";
import { z } from "zod";
import type { NewJob } from "./queues/queue-backend.ts";

/** What a deadline's job says. The label narrows down what may be due, for the handler and in the dashboard. */
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

/** One for each kind, label and second. A queue takes no id with every character that a label may have. */
export function wakeUpId(kind: string, bucket: Date, label?: Label): string {
  const second = bucket.getTime() / SECOND_MS;
  if (!label) return `due_${kind}_${second}`;
  const digest = createHash("sha256")
    .update(JSON.stringify(Object.entries(label).sort()))
    .digest("hex");
  return `due_${kind}_${digest.slice(0, DIGEST_LENGTH)}_${second}`;
}

export type Label = Readonly<Record<string, string>>;

const DIGEST_LENGTH = 16;

export function wakeUpJob(kind: string, bucket: Date, delayMs: number, label?: Label): NewJob {
  return {
    name: kind,
    data: { kind, instant: bucket.toISOString(), ...(label && { label }) },
    opts: {
      jobId: wakeUpId(kind, bucket, label),
      delay: delayMs,
      attempts: ATTEMPTS,
      backoff: { type: "exponential", delay: FIRST_RETRY_MS },
    },
  };
}

export function readWakeUp(data: unknown): WakeUp {
  return wakeUpSchema.parse(data);
}
