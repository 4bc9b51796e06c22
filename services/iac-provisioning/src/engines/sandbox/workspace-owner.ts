import { chmod, chown, lchown, readdir } from "node:fs/promises";
import path from "node:path";
import type { EngineUser } from "./sandbox-user.ts";

/**
 * Gives a file, or a directory and all in it, to the user that engines run as. Only for what nobody else could write to
 * until now.
 */
export async function handOver(what: string, { uid, gid }: EngineUser): Promise<void> {
  const entries = await readdir(what, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) await handOver(path.join(what, entry.name), { uid, gid });
  await lchown(what, uid, gid);
}

/**
 * Lets the engines' user into a directory of ours, but not change what is in it: so it can't put anything else in the
 * place of what it was given.
 */
export async function closeToOthers(directory: string, { gid }: EngineUser): Promise<void> {
  await chown(directory, 0, gid);
  await chmod(directory, 0o710);
}
