import { readFile } from "node:fs/promises";

/** How often the kernel has killed a process to free memory, on this machine and in its containers. */
export async function oomKills(): Promise<number> {
  const counters = await readFile("/proc/vmstat", "utf8").catch(() => "");
  return Number(/^oom_kill (\d+)$/m.exec(counters)?.[1] ?? 0);
}
