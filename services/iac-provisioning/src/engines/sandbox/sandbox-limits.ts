import { readFile } from "node:fs/promises";
import { findTool } from "./sandbox-tools.ts";

const MEBIBYTE = 1024 * 1024;
/** Between the signal that tells a process that its processor time is up, and the one that it can't survive. */
const CPU_GRACE_SECONDS = 2;
/** Files and sockets of one process; a provider opens some hundreds. */
const MAX_OPEN_FILES = 8_192;

/** What the settings allow each of an engine's processes. */
export interface LimitSettings {
  readonly cpuSeconds: number;
  /**
   * Heap, stacks and other private writable memory. Address space is not limited: a Go program reserves gigabytes of it
   * that it never uses.
   */
  readonly memoryMb: number;
  readonly fileMb: number;
  /** Of all engines together: the kernel counts by user, so it holds only where engines have a user of their own. */
  readonly maxProcesses: number;
}

export interface ResourceLimits extends LimitSettings {
  /** The `prlimit` that sets them. */
  readonly tool: string;
  /** `prlimit`'s flags, none above what this process may set. */
  readonly flags: readonly string[];
}

/** Undefined where there is no `prlimit` (util-linux) to set limits with. */
export async function resourceLimits(
  settings: LimitSettings,
  { searchPath, ownUser }: { searchPath: string; ownUser: boolean },
): Promise<ResourceLimits | undefined> {
  const tool = await findTool("prlimit", searchPath);
  if (tool === undefined) return undefined;
  const hard = await hardLimits();
  const atMost = (name: string, wanted: number) => Math.min(wanted, hard.get(name) ?? Infinity);

  const cpuHard = atMost("Max cpu time", settings.cpuSeconds + CPU_GRACE_SECONDS);
  const data = atMost("Max data size", settings.memoryMb * MEBIBYTE);
  const fsize = atMost("Max file size", settings.fileMb * MEBIBYTE);
  const nofile = atMost("Max open files", MAX_OPEN_FILES);
  const nproc = atMost("Max processes", settings.maxProcesses);
  const flags = [
    `--cpu=${Math.min(settings.cpuSeconds, cpuHard)}:${cpuHard}`,
    `--data=${data}`,
    `--fsize=${fsize}`,
    `--nofile=${nofile}`,
    "--core=0",
    ...(ownUser ? [`--nproc=${nproc}`] : []),
  ];
  return { ...settings, tool, flags };
}

/** The words to put in front of a command line. */
export function limitCommand({ tool, flags }: ResourceLimits): string[] {
  return [tool, ...flags, "--"];
}

/** This process's own, by the names that the kernel gives them: without privilege a limit can only be lowered. */
async function hardLimits(): Promise<Map<string, number>> {
  const table = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const rows = table.matchAll(/^(?<name>Max \S+(?: \S+)*?)\s{2,}\S+\s+(?<hard>\d+)\s/gm);
  return new Map([...rows].map(({ groups }) => [groups?.["name"] ?? "", Number(groups?.["hard"])]));
}
