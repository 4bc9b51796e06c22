import type { JobQueue } from "./queue-backend.ts";

const PAGE = 200;

/**
 * Sends a queue's parked jobs through again, with all their tries, oldest first. Answers how many. Harmless to repeat:
 * what had its effect already is found in the inbox's receipts.
 */
export async function redriveParked(queue: JobQueue): Promise<number> {
  let redriven = 0;
  for (let parked = await queue.getFailedCount(); parked > 0; parked -= PAGE) {
    const jobs = await queue.getFailed(0, Math.min(parked, PAGE) - 1);
    for (const job of jobs) {
      await job.retry("failed", { resetAttemptsMade: true, resetAttemptsStarted: true });
      redriven += 1;
    }
    if (jobs.length === 0) break;
  }
  return redriven;
}
