import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdir, open, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { InvalidProgram } from "./program.ts";

/** A program is source code: bounds far above any real one. */
export const MAX_FILES = 2000;
export const MAX_TOTAL_BYTES = 16 * 1024 * 1024;
/** Steps of a path, the file's own name included. */
export const MAX_DEPTH = 16;

/** `path` is relative to the program's directory, with forward slashes. */
export interface ProgramFile {
  readonly path: string;
  readonly content: Buffer;
}

/**
 * A program's whole content, sorted by path. Refuses whatever is not a plain file or directory, so nothing can point
 * out of it, and whatever is over its bounds. Throws InvalidProgram.
 */
export async function readProgramFiles(directory: string): Promise<ProgramFile[]> {
  const paths = await listFiles(directory, "", MAX_DEPTH);
  if (paths.length > MAX_FILES)
    throw new InvalidProgram(`holds ${paths.length} files; at most ${MAX_FILES} are allowed`);

  const files: ProgramFile[] = [];
  let bytesLeft = MAX_TOTAL_BYTES;
  for (const relative of paths.sort()) {
    const content = await readPlainFile(path.join(directory, relative), relative, bytesLeft);
    bytesLeft -= content.length;
    files.push({ path: relative, content });
  }
  return files;
}

/** `sha256:<hex>` over every path and content, so the same content has the same digest wherever it lies. */
export function programDigest(files: readonly ProgramFile[]): string {
  const hash = createHash("sha256");
  for (const { path: name, content } of files) hash.update(`${name}\0${content.length}\0`).update(content);
  return `sha256:${hash.digest("hex")}`;
}

/** Writes the files under an existing directory, readable by this user only. */
export async function writeProgramFiles(files: readonly ProgramFile[], directory: string): Promise<void> {
  for (const { path: relative, content } of files) {
    const destination = path.join(directory, relative);
    await mkdir(path.dirname(destination), { recursive: true, mode: 0o700 });
    await writeFile(destination, content, { mode: 0o600, flag: "wx" });
  }
}

async function listFiles(root: string, relative: string, depth: number): Promise<string[]> {
  if (depth === 0) throw new InvalidProgram(`${relative}: directories are nested more than ${MAX_DEPTH} deep`);
  const entries = await readdir(path.join(root, relative), { withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries) {
    const name = relative === "" ? entry.name : `${relative}/${entry.name}`;
    if (entry.isDirectory()) found.push(...(await listFiles(root, name, depth - 1)));
    else if (entry.isFile()) found.push(name);
    else throw new InvalidProgram(`${name}: only plain files and directories are allowed, no links or devices`);
  }
  return found;
}

async function readPlainFile(absolute: string, relative: string, bytesLeft: number): Promise<Buffer> {
  const { size } = await lstat(absolute);
  if (size > bytesLeft) throw new InvalidProgram(`${relative}: the program is larger than ${MAX_TOTAL_BYTES} bytes`);
  const handle = await open(absolute, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}
