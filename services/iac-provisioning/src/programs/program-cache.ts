import { mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import type { NewId } from "@runtime-cloud/service-kit/ids";
import { InvalidProgram } from "./program.ts";
import { programDigest, readProgramFiles, writeProgramFiles, type ProgramFile } from "./program-files.ts";
import { hasCode } from "./system-error.ts";

/** Each try puts aside what isn't the content; only somebody who keeps writing there makes them all fail. */
const MAX_TRIES = 10;

/** Content that has a digest, on this machine's disk: `<directory>/<hex digits>/`. It may be emptied at any moment. */
export interface ProgramCache {
  readonly directory: string;
  readonly newId: NewId;
}

export interface CachedProgram {
  readonly directory: string;
  readonly files: readonly ProgramFile[];
}

/**
 * The content of a digest; written from what `fetch` returns where it is missing or isn't that content any more.
 * Processes may do this at once: whoever comes second finds the first one's.
 */
export async function cachedProgram(
  { directory: root, newId }: ProgramCache,
  digest: string,
  fetch: () => Promise<readonly ProgramFile[]>,
): Promise<CachedProgram> {
  const directory = path.join(root, digest.slice(digest.indexOf(":") + 1));
  const found = await intact(directory, digest);
  if (found) return { directory, files: found };

  const files = await fetch();
  const fresh = path.join(root, `.${newId()}`);
  try {
    await mkdir(fresh, { recursive: true, mode: 0o700 });
    await writeProgramFiles(files, fresh);
    await place(fresh, directory, digest);
    return { directory, files };
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** Moves what was written to where it is looked for, in one step, so that nobody ever sees half of it. */
async function place(fresh: string, directory: string, digest: string): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    if ((await moved(fresh, directory)) || (await intact(directory, digest))) return;
    const aside = `${fresh}-${tries}`;
    await moved(directory, aside);
    await rm(aside, { recursive: true, force: true });
  }
  throw new Error(`the cached program ${digest} is changed all the time`);
}

async function intact(directory: string, digest: string): Promise<ProgramFile[] | undefined> {
  try {
    const files = await readProgramFiles(directory);
    return programDigest(files) === digest ? files : undefined;
  } catch (error) {
    if (error instanceof InvalidProgram || hasCode(error, "ENOENT", "ENOTDIR", "ELOOP")) return undefined;
    throw error;
  }
}

/** False where something is there already, or there is nothing to move. */
async function moved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOTEMPTY", "EEXIST", "ENOTDIR", "ENOENT")) return false;
    throw error;
  }
}
