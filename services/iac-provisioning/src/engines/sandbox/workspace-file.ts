import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import path from "node:path";
import { hasCode } from "../../system-error.ts";

/** Neither follows a link nor waits for a pipe's other end. */
const READ_PLAIN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads a file that an engine left in a directory of its workspace. What ran there may have put anything in its place, a
 * link to a file that only the service may read above all: so only a plain file of the directory's own owner, known by
 * no other name, counts. Undefined when there is none.
 */
export async function readWorkspaceFile(file: string): Promise<Buffer | undefined> {
  try {
    const { uid: owner } = await stat(path.dirname(file));
    const handle = await open(file, READ_PLAIN);
    try {
      const found = await handle.stat();
      if (!found.isFile() || found.uid !== owner || found.nlink !== 1) return undefined;
      return await handle.readFile();
    } finally {
      await handle.close();
    }
  } catch (error) {
    // ELOOP: a link; ENXIO: a socket.
    if (hasCode(error, "ENOENT", "ENOTDIR", "ELOOP", "ENXIO")) return undefined;
    throw error;
  }
}
