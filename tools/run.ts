import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";

/** What a finished command printed, both streams in the order they came, and how it ended. */
export interface Finished {
  readonly ok: boolean;
  readonly output: string;
}

/**
 * Runs Node with the repository as its working directory and the installed packages' commands on the PATH.
 * Never throws for a command that fails; throws if it can't be started.
 */
export async function tryNode(
  root: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const path = [join(root, "node_modules/.bin"), process.env["PATH"] ?? ""].join(delimiter);
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, PATH: path, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => (output += chunk));
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ ok: code === 0, output: output.trim() }));
  });
}

/** As {@link tryNode}, but a command that fails is an error that carries all that it printed. */
export async function runNode(
  root: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { ok, output } = await tryNode(root, args, env);
  if (!ok) throw new Error(`\`node ${args.join(" ")}\` failed:\n${output}`);
  return output;
}
