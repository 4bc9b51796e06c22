import { readFile, writeFile } from "node:fs/promises";

const KIB_PER_MIB = 1_024;
/** What tells the kernel to begin a process's peak anew: see proc(5). */
const RESET_PEAK = "5";

/** Whether this system tells other processes' peaks. */
export const tellsPeaks = process.platform === "linux";

/** Makes a process's peak its present resident memory, and answers that in MiB. */
export async function resetPeak(pid: number): Promise<number> {
  await writeFile(`/proc/${pid}/clear_refs`, RESET_PEAK);
  return peakMb(pid);
}

/** The most resident memory since then, in MiB. */
export async function peakMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? [];
  if (kib === undefined) throw new Error(`process ${pid} has no peak`);
  return Number(kib) / KIB_PER_MIB;
}
