import type { Context } from "../context.ts";
import { stateKeyOf } from "./engine-job.ts";
import { type HeldRun, readHeld, RunLost } from "./held-run.ts";

/**
 * Opens the engine's state to a run that is about to apply, and to nobody else: returns its credential. Throws RunLost.
 * A run that ends takes its credential with it, in the same transaction; one that was lost between its start and here
 * is found out after the credential is made, so that no executor applies what is no longer its own.
 */
export async function openStateForApply(context: Context, held: HeldRun): Promise<string> {
  const { run, specification } = held;
  const { id: holderId, executorEpoch: epoch } = run;
  await breakOrphanedLock(context, held);
  const key = stateKeyOf(specification);
  const password = await context.credentials.grant({ holderId, key, epoch, access: "write" });
  if (password === undefined) throw new RunLost(run);
  try {
    await readHeld(context.client, held);
  } catch (error) {
    await context.credentials.revoke(holderId);
    throw error;
  }
  return password;
}

/** The environment is this run's alone: whoever else holds its state's lock died with it. */
async function breakOrphanedLock({ client, states, logger }: Context, { run, specification }: HeldRun): Promise<void> {
  const key = stateKeyOf(specification);
  const state = await client.engineState.findUnique({ where: { tenantId_environmentId_kind: key } });
  if (!state?.lockRunId || state.lockRunId === run.id) return;
  await states.breakLock(key, state.lockRunId);
  logger.warn({ runId: run.id, deadRunId: state.lockRunId }, "lock of a dead run broken");
}
