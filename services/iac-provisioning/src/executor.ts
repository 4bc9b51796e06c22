import { applyApproved } from "./apply-phase.ts";
import type { Context } from "./context.ts";
import { type ExecutorWork, runCause } from "./held-run.ts";
import { planQueued } from "./plan-phase.ts";
import { unsealed } from "./run-row.ts";

/**
 * Brings a run as far as it can go now: plans it when it is its turn, applies it once it is approved. Called for a run
 * that needs neither, or twice at once, it does nothing. Throws when `stop` aborts before the run got as far as it can.
 */
export async function executeRun(context: Context, runId: string, stop: AbortSignal): Promise<void> {
  const run = await context.client.provisioningRun.findUnique({ where: { id: runId }, omit: unsealed });
  if (!run) return;
  const work: ExecutorWork = { runId, cause: await runCause(context, run, `executor:${context.executorId}`), stop };
  await planQueued(context, work);
  stop.throwIfAborted();
  await applyApproved(context, work);
}
