import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A process that an engine is, or that an engine has started. */
export interface EngineChild {
  pid: number;
  /** Its arguments, the binary first. */
  command: string[];
}

/**
 * Whatever runs in, or was started from, a directory below `workDir`: the CLI, its provisioners, and their children,
 * whoever their parent is by now. The service itself only names the directory and isn't one of them.
 */
export function engineChildren(workDir: string): EngineChild[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const command = read(pid, "cmdline");
      const below = `${workDir}/`;
      const belongs = [command, read(pid, "environ"), `${workingDirectory(pid)}/`].some((text) => text.includes(below));
      return belongs ? [{ pid: Number(pid), command: command.split("\0").filter((word) => word !== "") }] : [];
    });
}

/** The CLI's process that works on `verb`. */
export function engineAt(workDir: string, verb: "plan" | "apply"): EngineChild | undefined {
  return engineChildren(workDir).find(({ command: [binary = "", first] }) => {
    return /(?:terraform|tofu)$/.test(binary) && first === verb;
  });
}

/** Empty for a process that has ended meanwhile. */
function read(pid: string, file: "cmdline" | "environ"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

function workingDirectory(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}
