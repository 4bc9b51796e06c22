import { randomUUID } from "node:crypto";
import { linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { announcePresence, isPresent } from "./presence.ts";
import { until } from "./until.ts";

const CLAIM = /^(\d+)\.lock$/;

/**
 * Does `work` while nobody else, in this process or another, does work under the same folder's lock. A lock whose
 * holder was killed is free.
 *
 * The lock is the file `<n>.lock` with the highest n. Its holder's {@link Presence} is in it, and nothing once it is
 * released; whoever finds it free makes the next one, which only one can. The highest is never removed: were it,
 * somebody who had seen it before could make it anew beside a holder.
 *
 * @throws Error when others hold it for all of `timeoutMs`.
 */
export async function withFolderLock<T>(folder: string, timeoutMs: number, work: () => Promise<T>): Promise<T> {
  const presence = await announcePresence();
  try {
    const claim = await until(`who else is starting a server in ${folder}`, timeoutMs, () => {
      return claimed(folder, presence.proof);
    });
    try {
      return await work();
    } finally {
      writeFileSync(claim, "");
    }
  } finally {
    presence.end();
  }
}

/** The file of our claim; undefined when somebody else holds the lock or was faster. */
async function claimed(folder: string, proof: string): Promise<string | undefined> {
  const highest = Math.max(0, ...claims(folder));
  if (await isHeld(fileOf(folder, highest))) return undefined;
  const ours = highest + 1;
  if (!createWhole(fileOf(folder, ours), proof)) return undefined;
  // Since we looked, others may have passed this number and removed its file.
  const overtaken = claims(folder).some((claim) => claim > ours);
  const past = overtaken ? [ours] : claims(folder).filter((claim) => claim < ours);
  for (const claim of past) rmSync(fileOf(folder, claim), { force: true });
  return overtaken ? undefined : fileOf(folder, ours);
}

async function isHeld(file: string): Promise<boolean> {
  const proof = contentOf(file);
  return proof !== undefined && proof !== "" && (await isPresent(proof));
}

/** Makes a file that nobody sees half-written; false when it exists already. */
function createWhole(file: string, content: string): boolean {
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, content, { mode: 0o600 });
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (isErrno(error, "EEXIST")) return false;
    throw error;
  } finally {
    rmSync(draft);
  }
}

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

function claims(folder: string): number[] {
  return readdirSync(folder)
    .flatMap((name) => CLAIM.exec(name)?.[1] ?? [])
    .map(Number);
}

function fileOf(folder: string, claim: number): string {
  return join(folder, `${claim}.lock`);
}

function isErrno(error: unknown, code: string): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === code;
}
