import { applyApproved } from "./apply-phase.ts";
import type { Context } from "../context.ts";
import { takeNext, takeRun, type Turn } from "./next-run.ts";
import { planHeld } from "./plan-phase.ts";
import { isHeld } from "../runs/run-end.ts";
import { enqueueRun } from "../runs/run-queue.ts";
import type { Run } from "../runs/run-row.ts";

/** Which run had its turn, and what became of it by then; a job keeps it, so the dashboard shows it. */
export type TurnResult = Pick<Run, "tenantId" | "state" | "reason"> & { runId: string };

/**
 * Brings the run whose turn it is as far as it can go now: plans it, and applies it once it is approved. `asked` is the
 * run that the job was made for; it may be another's turn. Undefined when nothing waits for an executor. Throws when
 * `stop` aborts before the run got as far as it can.
 */
export async function executeNext(context: Context, asked: string, stop: AbortSignal): Promise<TurnResult | undefined> {
  for (;;) {
    stop.throwIfAborted();
    const turn = await takeNext(context);
    if (!turn) return undefined;
    if (turn.run.id !== asked) keepJobFor(context, turn.run);
    const result = await bringOn(context, turn, stop);
    // Otherwise another executor was faster to apply it, and this one has still to serve a run.
    if (!isHeld(result.state)) return result;
  }
}

/** As `executeNext` for one run, whosever turn it is; undefined when it doesn't wait for an executor. */
export async function executeRun(context: Context, runId: string, stop: AbortSignal): Promise<TurnResult | undefined> {
  const turn = await takeRun(context, runId);
  return turn && bringOn(context, turn, stop);
}

async function bringOn(context: Context, { run, cause, held }: Turn, stop: AbortSignal): Promise<TurnResult> {
  if (held) {
    await planHeld(context, held, stop);
    stop.throwIfAborted();
  }
  await applyApproved(context, { runId: run.id, cause, stop });
  const { id: runId, tenantId } = run;
  const now = await context.client.provisioningRun.findUniqueOrThrow({
    where: { id: runId },
    select: { state: true, reason: true },
  });
  return { runId, tenantId, ...now };
}

/** The run that the job was made for still waits, and this one's own job serves it: so there has to be one. */
function keepJobFor(context: Context, taken: Run): void {
  enqueueRun(context, taken).catch((err: unknown) => {
    context.logger.warn({ err, runId: taken.id }, "no job for a run that waits; the sweep makes one");
  });
}
