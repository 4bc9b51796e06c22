import { constants } from "node:fs";
import { access } from "node:fs/promises";
import path from "node:path";

/** Where a system keeps the tools that administer it, which a service's own PATH may leave out. */
const SYSTEM_DIRECTORIES = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/** The absolute path of a tool of the system; undefined where it isn't installed, or this isn't Linux. */
export async function findTool(name: string, searchPath: string): Promise<string | undefined> {
  if (process.platform !== "linux") return undefined;
  const directories = [...searchPath.split(path.delimiter).filter(path.isAbsolute), ...SYSTEM_DIRECTORIES];
  for (const candidate of directories.map((directory) => path.join(directory, name))) {
    if (await isExecutable(candidate)) return candidate;
  }
  return undefined;
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
