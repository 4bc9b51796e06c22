import { readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import type { ProgramCache } from "./program-cache.ts";
import { hasCode } from "../system-error.ts";

/** An engine reads a program as it begins, soon after it was asked for: whatever wasn't asked for so long is in no use. */
const IDLE_MS = 10 * 60_000;
/** How what is being written, or removed, begins. */
const UNFINISHED = ".";

/** Removes the programs that were used least recently, down to as many as may be there; and what dead processes began. */
export async function trimCache({ directory: root, most, newId, clock }: ProgramCache): Promise<void> {
  const idleSince = clock.now().getTime() - IDLE_MS;
  const found = await Promise.all(
    (await readdir(root)).map(async (name) => ({ name, usedAt: await lastUse(path.join(root, name)) })),
  );
  const isUnfinished = ({ name }: { name: string }) => name.startsWith(UNFINISHED);
  const programs = found.filter((each) => !isUnfinished(each)).sort((a, b) => b.usedAt - a.usedAt);
  for (const { name, usedAt } of [...programs.slice(most), ...found.filter(isUnfinished)]) {
    if (usedAt <= idleSince) await remove(path.join(root, name), path.join(root, `${UNFINISHED}${newId()}`), idleSince);
  }
}

/** Puts it aside in one step, and back where somebody began to use it just before that. */
async function remove(directory: string, aside: string, idleSince: number): Promise<void> {
  try {
    await rename(directory, aside);
    if ((await lastUse(aside)) > idleSince) await rename(aside, directory);
  } catch (error) {
    // Another process has removed it, or has put it there again.
    if (!hasCode(error, "ENOENT", "ENOTEMPTY", "EEXIST")) throw error;
  }
  await rm(aside, { recursive: true, force: true });
}

/** The beginning of all time where it is gone. */
async function lastUse(directory: string): Promise<number> {
  try {
    return (await stat(directory)).mtimeMs;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return 0;
    throw error;
  }
}
