import { readFile } from "node:fs/promises";
import { findProcesses } from "@runtime-cloud/iac-provisioning/engines/sandbox/stray-processes";
import { until } from "@runtime-cloud/local-servers/until";

/** Longer than a guardian gives an engine that ignores it. */
const DEAD_WITHIN_MS = 40_000;

/** Whether a process runs. One that was killed may show as a zombie until whoever adopted it looks. */
export async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const state = stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
  return !["", "Z", "X"].includes(state);
}

export async function expectDead(...pids: readonly number[]): Promise<void> {
  for (const pid of pids) {
    await until(`process ${pid} to be dead`, DEAD_WITHIN_MS, async () => !(await isAlive(pid)) || undefined);
  }
}

/** The launcher of a process, which is its child. */
export async function launcherOf(pid: number): Promise<number | undefined> {
  for (const candidate of await findProcesses({ directory: "/" })) {
    const [line, status] = await Promise.all(["cmdline", "status"].map((file) => readProc(candidate, file)));
    if (line?.includes("launcher-process.mjs") && status?.includes(`\nPPid:\t${pid}\n`)) return candidate;
  }
  return undefined;
}

/** The guardian of a process, found by the mark that it was told to look for. */
export async function guardianOf(pid: number): Promise<number | undefined> {
  for (const candidate of await findProcesses({ directory: "/" })) {
    const line = await readProc(candidate, "cmdline");
    if (line.includes("guardian.sh") && line.includes(`=${pid}-`)) return candidate;
  }
  return undefined;
}

/** Empty for a process that has ended meanwhile. */
function readProc(pid: number, file: string): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
}
