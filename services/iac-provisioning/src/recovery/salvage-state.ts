import path from "node:path";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { Context } from "../context.ts";
import { patiently } from "../execution/database-patience.ts";
import { stateKeyOf } from "../execution/engine-job.ts";
import type { Rescue } from "../engines/engine.ts";
import { type HeldRun, readHeld, RunLost } from "../execution/held-run.ts";
import { lockEnvironment } from "../environments/lock-environment.ts";
import { writeSalvageFile } from "./salvage-files.ts";
import { keepSalvage, sealSalvage } from "./salvaged-state.ts";
import { adoptState } from "../state/adopt-state.ts";
import { completeState } from "../state/complete-state.ts";

/**
 * Saves a state that the engine of a held run could not write: records it where that can still be done, else keeps it
 * sealed with the run, else on disk, from where a sweep takes it. Throws when there is no place left for it.
 */
export async function rescueState(context: Context, held: HeldRun, state: string): Promise<Rescue> {
  const content = completeState(Buffer.from(state), context.newId);
  const obstacle = await record(context, held, content);
  if (obstacle === undefined) return { result: "recorded" };
  await keep(context, held, content);
  return { result: "kept", reason: obstacle };
}

/** Writes it as the engine would have, as long as the run is this executor's. Why not, when it can't be. */
async function record(context: Context, held: HeldRun, content: Buffer): Promise<string | undefined> {
  const { run, specification, cause } = held;
  const writer = { runId: run.id, epoch: run.executorEpoch };
  try {
    return await patiently(context, () =>
      unitOfWork(context, cause, async ({ tx }) => {
        await lockEnvironment(tx, run.tenantId, run.environmentId);
        await readHeld(tx, held);
        return adoptState(tx, context.box, stateKeyOf(specification), content, writer);
      }),
    );
  } catch (err) {
    if (err instanceof RunLost) return "the run was taken from its executor";
    context.logger.error({ err, runId: run.id }, "a state that its engine could not write can't be recorded");
    return "the state store refuses it";
  }
}

async function keep(context: Context, { run }: HeldRun, content: Buffer): Promise<void> {
  const sealed = sealSalvage(context, run.id, content);
  try {
    const kept = await keepSalvage(context, run.id, sealed);
    context.logger.warn({ runId: run.id, kept }, "a state that its engine could not write is salvaged");
  } catch (err) {
    await writeSalvageFile(path.resolve(context.settings.WORK_DIR), run.id, sealed);
    context.logger.error({ err, runId: run.id }, "a salvaged state is on disk until the database takes it");
  }
}
