import { mkdir, rename, rm, utimes } from "node:fs/promises";
import path from "node:path";
import type { Clock } from "@runtime-cloud/service-kit/clock";
import type { NewId } from "@runtime-cloud/service-kit/ids";
import { InvalidProgram } from "./program.ts";
import { programDigest, readProgramFiles, writeProgramFiles, type ProgramFile } from "./program-files.ts";
import { hasCode } from "../system-error.ts";
import { trimCache } from "./trim-cache.ts";

/** Each try puts aside what isn't the content; only somebody who keeps writing there makes them all fail. */
const MAX_TRIES = 10;

/**
 * Content that has a digest, on this machine's disk: `<directory>/<hex digits>/`, whose time of change is when it was
 * used last. Anybody may empty it at any moment.
 */
export interface ProgramCache {
  readonly directory: string;
  /** How many programs lie there, but for those that are in use. */
  readonly most: number;
  readonly newId: NewId;
  readonly clock: Clock;
}

export interface CachedProgram {
  readonly directory: string;
  readonly files: readonly ProgramFile[];
}

/**
 * The content of a digest; written from what `fetch` returns where it is missing or isn't that content any more, and
 * then what is more than the cache may hold goes. Processes may do this at once: whoever comes second finds the first
 * one's.
 */
export async function cachedProgram(
  cache: ProgramCache,
  digest: string,
  fetch: () => Promise<readonly ProgramFile[]>,
): Promise<CachedProgram> {
  const { directory: root, newId, clock } = cache;
  const directory = path.join(root, digest.slice(digest.indexOf(":") + 1));
  await use(directory, clock.now());
  const found = await intact(directory, digest);
  if (found) return { directory, files: found };

  const files = await fetch();
  const fresh = path.join(root, `.${newId()}`);
  try {
    await mkdir(fresh, { recursive: true, mode: 0o700 });
    await writeProgramFiles(files, fresh);
    await use(fresh, clock.now());
    await place(fresh, directory, digest);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  await trimCache(cache);
  return { directory, files };
}

/** Before it is read: what is used is left alone from then on. */
async function use(directory: string, now: Date): Promise<void> {
  await utimes(directory, now, now).catch((error: unknown) => {
    if (!hasCode(error, "ENOENT", "ENOTDIR")) throw error;
  });
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
