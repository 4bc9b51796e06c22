import { createHash } from "node:crypto";
import { lstatSync, mkdirSync } from "node:fs";
import { join } from "node:path";

/** Survives a restart of the machine and can be reached by every account. */
export const SYSTEM_PLACE = "/var/tmp";

/**
 * A folder of ours outside the repository, for when an account that a server runs as can't reach the repository.
 * The same name and key always give the same folder.
 *
 * @throws Error when someone else made it first.
 */
export function systemFolder(name: string, key: string): string {
  const folder = join(
    SYSTEM_PLACE,
    `runtime-cloud-${name}-${createHash("sha256").update(key).digest("hex").slice(0, 16)}`,
  );
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.()) {
    throw new Error(
      `${folder} belongs to someone else: remove it, or move the repository to where every user may look.`,
    );
  }
  return folder;
}
