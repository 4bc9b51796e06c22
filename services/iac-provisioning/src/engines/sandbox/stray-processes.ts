import { readdir, readFile, readlink } from "node:fs/promises";
import path from "node:path";

/** A process that forks as fast as it is killed is caught in some round, or is not ours to catch. */
const MAX_ROUNDS = 10;

/** How a process is known, wherever it went: leaving its process group and session changes none of these. */
export interface StrayMarks {
  /** `NAME=value` in the environment that it was started with. */
  readonly environment?: string;
  /** It works in this directory or below. */
  readonly directory?: string;
  /** It holds one of these open, as `/proc/<pid>/fd` shows them: `socket:[1234]`. */
  readonly files?: readonly string[];
  /** Processes that are none, for they ran before: to look into all that a machine runs takes its time. */
  readonly except?: ReadonlySet<number>;
}

/** All that run now; empty where there is no /proc. */
export async function runningProcesses(): Promise<Set<number>> {
  const names = await readdir("/proc").catch(() => []);
  return new Set(names.map(Number).filter(Number.isInteger));
}

/** Kills every process with one of the marks, and what they start meanwhile. Does nothing where there is no /proc. */
export async function killStrays(marks: StrayMarks): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const strays = await findProcesses(marks);
    if (strays.length === 0) return;
    for (const pid of strays) kill(pid);
  }
}

/** The processes, but this one, with one of the marks. */
export async function findProcesses(marks: StrayMarks): Promise<number[]> {
  const pids = [...(await runningProcesses())].filter((pid) => pid !== process.pid && !marks.except?.has(pid));
  const found = await Promise.all(pids.map(async (pid) => ((await isMarked(pid, marks)) ? [pid] : [])));
  return found.flat();
}

async function isMarked(pid: number, { environment, directory, files }: StrayMarks): Promise<boolean> {
  if (environment !== undefined && (await hasVariable(pid, environment))) return true;
  if (directory !== undefined && (await worksIn(pid, directory))) return true;
  return files !== undefined && (await holdsOpen(pid, files));
}

async function hasVariable(pid: number, variable: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
  return environment.split("\0").includes(variable);
}

async function worksIn(pid: number, directory: string): Promise<boolean> {
  const current = await readlink(`/proc/${pid}/cwd`).catch(() => "");
  return current === directory || current.startsWith(`${directory}${path.sep}`);
}

async function holdsOpen(pid: number, files: readonly string[]): Promise<boolean> {
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const links = await Promise.all(descriptors.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => "")));
  return links.some((link) => files.includes(link));
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has just ended.
  }
}
