import { mkdtemp } from "node:fs/promises";
import path from "node:path";
import { processIdentity } from "./process-identity.ts";

/** What a work directory's name tells: whose work it is, and which process made it. */
export interface WorkspaceName {
  readonly holderId: string;
  /** See processIdentity. */
  readonly owner: string;
}

/** An id may hold anything, encoded; what mkdtemp adds is six letters and digits. */
const NAME = /^terraform-(?<holder>.+)-(?<owner>\d+-\d+)-[A-Za-z0-9]{6}$/;

/**
 * Makes `terraform-<holderId>-<pid>-<start>-<random>`, private to this user. The name alone says whose it is, so what a
 * process that was killed leaves behind is found, at whatever moment that was.
 */
export function makeWorkspace(workRoot: string, holderId: string): Promise<string> {
  return mkdtemp(path.join(workRoot, `terraform-${encodeURIComponent(holderId)}-${processIdentity()}-`));
}

/** Undefined for a directory that isn't a workspace. */
export function parseWorkspaceName(name: string): WorkspaceName | undefined {
  const { holder, owner } = NAME.exec(name)?.groups ?? {};
  if (holder === undefined || owner === undefined) return undefined;
  try {
    return { holderId: decodeURIComponent(holder), owner };
  } catch {
    return undefined;
  }
}

/** Where in a workspace the program's copy lies, and where the CLI runs. */
export function programDirectoryOf(workspace: string): string {
  return path.join(workspace, "program");
}
