import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/** The tarball has nowhere to go. */
export class UnusableFolder extends Error {
  override readonly name = "UnusableFolder";
}

/**
 * Makes a folder and those above it, where they are absent. One by one: Node's recursive `mkdir` never ends where a
 * filesystem such as /proc says that a folder that can't be made has no parent.
 */
export async function makeFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return;
  if (found) throw new UnusableFolder(`--out: ${path} is a file; name a folder`);
  if (dirname(path) !== path) await makeFolder(dirname(path));
  try {
    await mkdir(path);
  } catch (cause) {
    const reason = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown reason";
    throw new UnusableFolder(`--out: ${path} can't be made (${reason}); name a folder that can`, { cause });
  }
}
