import path from "node:path";
import { startSweep, type Sweep } from "@runtime-cloud/eventing/sweep";
import { z } from "zod";
import type { Context } from "../context.ts";
import { type LeftWorkspace, leftWorkspaces, removeWorkspace } from "../engines/sandbox/left-workspaces.ts";
import { readUnwritten } from "../engines/terraform/terraform-unwritten.ts";
import { readSalvageFiles } from "./salvage-files.ts";
import { keepSalvage, sealSalvage } from "./salvaged-state.ts";
import { completeState } from "../state/complete-state.ts";
import { stateHead } from "../state/state-version.ts";

const SWEEP_MS = 30_000;
const runId = z.guid();

/** Looks after what dead executors left in the work directory, now and then as long as this process runs. */
export function startSalvage(context: Context, random: () => number = Math.random): Sweep {
  return startSweep({
    everyMs: SWEEP_MS,
    random,
    run: () =>
      salvageWorkspaces(context).catch((err: unknown) =>
        context.logger.warn({ err }, "the work directory can't be looked through; the next sweep tries again"),
      ),
  });
}

/**
 * Keeps each state that a dead executor's engine could not write with its run, and only then removes the directory; so
 * too the states that the database could not take before.
 */
export async function salvageWorkspaces(context: Context): Promise<void> {
  const workRoot = path.resolve(context.settings.WORK_DIR);
  for (const { runId: id, sealed, remove } of await readSalvageFiles(workRoot)) {
    await apart(context, id, async () => {
      if (await isSettled(context, id, sealed)) await remove();
    });
  }
  for (const left of await leftWorkspaces(workRoot)) {
    await apart(context, left.holderId, async () => {
      if (await isSalvaged(context, left)) await removeWorkspace(left.directory);
    });
  }
}

/** What can't be salvaged now holds up nothing else. */
async function apart({ logger }: Context, holderId: string, salvage: () => Promise<void>): Promise<void> {
  await salvage().catch((err: unknown) => logger.warn({ err, holderId }, "not salvaged; the next sweep tries again"));
}

async function isSalvaged(context: Context, { holderId, programDirectory }: LeftWorkspace): Promise<boolean> {
  const state = await readUnwritten(programDirectory);
  if (state === undefined || !runId.safeParse(holderId).success) return true;
  const content = completeState(Buffer.from(state), context.newId);
  if (!stateHead(content)) {
    context.logger.error(
      { runId: holderId },
      "a dead executor left a state that is cut off: its receipt is all there is",
    );
    return true;
  }
  return isSettled(context, holderId, sealSalvage(context, holderId, content));
}

async function isSettled(context: Context, id: string, sealed: Uint8Array): Promise<boolean> {
  const result = await keepSalvage(context, id, sealed);
  context.logger.warn({ runId: id, result }, "a state that its engine could not write was found in the work directory");
  return result !== "unknown";
}
