import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Runs npm in a folder and answers what it prints; what fails is an error with npm's own words. */
export async function npm(folder: string, args: readonly string[]): Promise<string> {
  // npm says where it is; started without it, we look on the PATH.
  const own = process.env["npm_execpath"];
  const [command, first] = own === undefined ? ["npm", []] : [process.execPath, [own]];
  const { stdout } = await promisify(execFile)(command, [...first, ...args], { cwd: folder });
  return stdout.trim();
}
