import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { pack } from "tar-stream";
import type { ProgramFile } from "./program-files.ts";

/** The same for every file, so that the same content always becomes the same tar. */
const OF_EVERY_FILE = { mode: 0o600, mtime: new Date(0) };

const gzipped = promisify(gzip);

/** A tar, compressed by gzip, of the files and nothing else. */
export async function packArchive(files: readonly ProgramFile[]): Promise<Buffer> {
  const packing = pack();
  for (const { path, content } of files) packing.entry({ name: path, ...OF_EVERY_FILE }, content);
  packing.finalize();
  return gzipped(await buffer(packing));
}
