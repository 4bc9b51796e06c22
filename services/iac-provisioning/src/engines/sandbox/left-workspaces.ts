import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import { hasCode } from "../../system-error.ts";
import { isRunning } from "./process-identity.ts";
import { findProcesses } from "./stray-processes.ts";
import { parseWorkspaceName, programDirectoryOf } from "./workspace-directory.ts";

/** An engine's last files may still be appearing. */
const REMOVE_RETRIES = 3;

/** The work directory of an executor that was killed before it could remove it. */
export interface LeftWorkspace {
  /** The run, or the inspection, that it was made for. */
  readonly holderId: string;
  /** Remove it with `removeWorkspace`. */
  readonly directory: string;
  /** Where in it the CLI ran, and left the state that it couldn't send. Read that with `readWorkspaceFile`. */
  readonly programDirectory: string;
}

/**
 * The workspaces whose process is gone, and in which no engine is still at work: a guardian gives that some seconds to
 * write its state, so one that was left just now shows up at a later look. Only processes of this machine, and of this
 * container, are known to live: a work root belongs to one of them.
 */
export async function leftWorkspaces(workRoot: string): Promise<LeftWorkspace[]> {
  const found: LeftWorkspace[] = [];
  for (const name of await namesIn(workRoot)) {
    const parsed = parseWorkspaceName(name);
    const directory = path.resolve(workRoot, name);
    if (!parsed || isRunning(parsed.owner) || (await isAtWork(directory))) continue;
    found.push({ holderId: parsed.holderId, directory, programDirectory: programDirectoryOf(directory) });
  }
  return found;
}

export async function removeWorkspace(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true, maxRetries: REMOVE_RETRIES });
}

async function isAtWork(directory: string): Promise<boolean> {
  return (await findProcesses({ directory })).length > 0;
}

async function namesIn(workRoot: string): Promise<string[]> {
  try {
    const entries = await readdir(workRoot, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}
