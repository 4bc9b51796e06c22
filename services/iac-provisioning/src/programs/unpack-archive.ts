import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { extract, type Header } from "tar-stream";
import { archivePath, shownName } from "./archive-path.ts";
import { InvalidProgram } from "./program.ts";
import { MAX_FILES, MAX_TOTAL_BYTES, type ProgramFile } from "./program-files.ts";
import { hasCode, messageOf } from "../system-error.ts";

/** A file's header, its padding and an extended header for a long name. */
const MAX_ENTRY_OVERHEAD = 2048;
/** Unpacking ends here, whatever the archive goes on to say: nothing small becomes anything large. */
const MAX_TAR_BYTES = MAX_TOTAL_BYTES + MAX_FILES * MAX_ENTRY_OVERHEAD;
const GZIP_MAGIC = Buffer.of(0x1f, 0x8b);

const gunzipped = promisify(gunzip);

/**
 * The files of a tar that gzip compressed, sorted by path and held in memory only. Takes plain files and directories;
 * anything that points elsewhere, is named dangerously or is over a program's bounds is refused. Throws InvalidProgram.
 */
export async function unpackArchive(archive: Uint8Array): Promise<ProgramFile[]> {
  const contents = new Map<string, Buffer>();
  let bytesLeft = MAX_TOTAL_BYTES;
  for await (const { header, content } of entriesOf(await decompress(archive))) {
    const path = pathOfFile(header);
    if (path === undefined) continue;
    if (contents.has(path)) throw new InvalidProgram(`${shownName(path)}: is in the archive twice`);
    if (contents.size === MAX_FILES) throw new InvalidProgram(`holds more than ${MAX_FILES} files`);
    bytesLeft -= content.length;
    if (bytesLeft < 0) throw new InvalidProgram(`its files are larger than ${MAX_TOTAL_BYTES} bytes in all`);
    contents.set(path, content);
  }
  refuseFilesWithin(contents);
  return [...contents].map(([path, content]) => ({ path, content })).sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function decompress(archive: Uint8Array): Promise<Buffer> {
  if (!GZIP_MAGIC.equals(archive.subarray(0, GZIP_MAGIC.length))) {
    throw new InvalidProgram("is not compressed by gzip: send a tar.gz, as `tar -czf` makes it");
  }
  try {
    return await gunzipped(archive, { maxOutputLength: MAX_TAR_BYTES });
  } catch (error) {
    if (hasCode(error, "ERR_BUFFER_TOO_LARGE")) {
      throw new InvalidProgram(`unpacks to more than ${MAX_TAR_BYTES} bytes, which is the most that is allowed`);
    }
    if (hasCode(error, "Z_BUF_ERROR")) throw new InvalidProgram("is cut off: its gzip has no end");
    throw new InvalidProgram(`is damaged: it doesn't decompress (${messageOf(error)})`);
  }
}

async function* entriesOf(tar: Buffer): AsyncGenerator<{ header: Header; content: Buffer }> {
  const unpacking = extract();
  unpacking.end(tar);
  try {
    for await (const entry of unpacking) yield { header: entry.header, content: await buffer(entry) };
  } catch (error) {
    throw new InvalidProgram(`is no whole tar (${messageOf(error)})`);
  }
}

/** Undefined for a directory, which comes into being with the files in it. */
function pathOfFile({ name, type }: Header): string | undefined {
  if (type === "directory") {
    archivePath(name.replace(/\/$/, ""));
    return undefined;
  }
  const path = archivePath(name);
  if (type !== "file") {
    // Whatever the library's types say, a type that it doesn't know is null.
    const kind: string | null = type;
    throw new InvalidProgram(
      `${shownName(name)}: is ${kind ?? "of an unknown type"}; only plain files and directories are allowed`,
    );
  }
  if (path === "") throw new InvalidProgram(`${shownName(name)}: is no name of a file`);
  return path;
}

function refuseFilesWithin(contents: ReadonlyMap<string, Buffer>): void {
  for (const path of contents.keys()) {
    for (let slash = path.indexOf("/"); slash > 0; slash = path.indexOf("/", slash + 1)) {
      const parent = path.slice(0, slash);
      if (contents.has(parent)) throw new InvalidProgram(`${shownName(parent)}: is a file and a directory at once`);
    }
  }
}
