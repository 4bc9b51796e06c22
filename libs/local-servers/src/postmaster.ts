import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

/** A server that has (or had) a data folder in use. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
}

/**
 * The server that is running on a data folder, by its `postmaster.pid`; undefined when none is. Removes a file that
 * a crash left and whose pid now belongs to another program, which would keep PostgreSQL from starting.
 */
export function runningPostmaster(data: string): Postmaster | undefined {
  const file = join(data, "postmaster.pid");
  if (!existsSync(file)) return undefined;
  const [pid = NaN, , , port = NaN] = readFileSync(file, "utf8").split("\n").map(Number);
  // A file that is still being written has no port yet.
  if (!Number.isSafeInteger(pid) || !Number.isSafeInteger(port)) return undefined;
  if (isPostgres(pid)) return { pid, port };
  rmSync(file, { force: true });
  return undefined;
}

function isPostgres(pid: number): boolean {
  try {
    const command = execFileSync("ps", ["-o", "comm=", "-p", String(pid)], { encoding: "utf8" });
    return command.includes("postgres");
  } catch {
    return false;
  }
}
