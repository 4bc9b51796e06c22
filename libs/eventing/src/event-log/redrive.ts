import { matches, oldestParked, PARKED_CHUNK, type ParkedFilter } from "./parked-events.ts";
import type { JobQueue, QueueJob } from "../queues/queue-backend.ts";

/**
 * Sends a queue's parked jobs through again, with all their tries, oldest first. Answers how many. Harmless to repeat:
 * what had its effect already is found in the inbox's receipts.
 */
export async function redriveParked(queue: JobQueue, filter: ParkedFilter = {}): Promise<number> {
  let redriven = 0;
  let passedOver = 0;
  // As many as there were: what fails again meanwhile comes back behind them.
  for (let left = await queue.getFailedCount(); left > 0; left -= PARKED_CHUNK) {
    const jobs = await oldestParked(queue, passedOver, Math.min(left, PARKED_CHUNK));
    if (jobs.length === 0) break;
    const sent = await Promise.all(jobs.filter((job) => matches(job, filter)).map(sendAgain));
    const again = sent.filter(Boolean).length;
    redriven += again;
    passedOver += jobs.length - again;
  }
  return redriven;
}

/** False for a job that somebody else redrove or removed meanwhile. */
async function sendAgain(job: QueueJob): Promise<boolean> {
  try {
    await job.retry("failed", { resetAttemptsMade: true, resetAttemptsStarted: true });
    return true;
  } catch (error) {
    if (await job.isFailed()) throw error;
    return false;
  }
}
