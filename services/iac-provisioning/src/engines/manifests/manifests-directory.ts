import { lstat, mkdir, open, readdir, readFile, rename, rm, rmdir } from "node:fs/promises";
import path from "node:path";
import { hasCode } from "../../system-error.ts";

/** A manifest is a page or two; what is larger was not written here. */
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_DEPTH = 16;
const NOT_A_PLAIN_FILE = "(not a plain file)";
const TOO_LARGE = `(larger than ${MAX_FILE_BYTES} bytes)`;

/** Each file's text by its path; hidden files and directories belong to others (`.git`). Empty when there is none. */
export async function observeDirectory(root: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  await collect(root, "", MAX_DEPTH, found);
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Writes a file as a whole or not at all. A link in its place is replaced; a link on the way there is an error. */
export async function writeManifest(root: string, address: string, text: string, temporaryName: string): Promise<void> {
  const parent = await ensureParent(root, address);
  const temporary = path.join(parent, `.${temporaryName}`);
  try {
    const handle = await open(temporary, "wx", 0o644);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path.join(root, address));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Removes a file, and the directories that it leaves empty. */
export async function removeManifest(root: string, address: string): Promise<void> {
  await ensureParent(root, address);
  await rm(path.join(root, address), { force: true });
  for (let parent = path.dirname(address); parent !== "."; parent = path.dirname(parent)) {
    const left = await readdir(path.join(root, parent));
    if (left.length > 0) return;
    await rmdir(path.join(root, parent));
  }
}

async function collect(root: string, relative: string, depth: number, found: Map<string, string>): Promise<void> {
  for (const entry of await entriesOf(path.join(root, relative))) {
    if (entry.name.startsWith(".")) continue;
    const address = relative === "" ? entry.name : `${relative}/${entry.name}`;
    if (entry.isDirectory() && depth > 0) await collect(root, address, depth - 1, found);
    else if (!entry.isDirectory()) {
      const text = entry.isFile() ? await readBounded(path.join(root, address)) : NOT_A_PLAIN_FILE;
      if (text !== undefined) found.set(address, text);
    }
  }
}

async function entriesOf(directory: string) {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

/** Undefined when it went away meanwhile. */
async function readBounded(file: string): Promise<string | undefined> {
  try {
    const { size } = await lstat(file);
    return size > MAX_FILE_BYTES ? TOO_LARGE : await readFile(file, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function ensureParent(root: string, address: string): Promise<string> {
  await mkdir(root, { recursive: true });
  let directory = root;
  for (const segment of address.split("/").slice(0, -1)) {
    directory = path.join(directory, segment);
    await mkdir(directory).catch((error: unknown) => {
      if (!hasCode(error, "EEXIST")) throw error;
    });
    if (!(await lstat(directory)).isDirectory()) throw new Error(`${directory} is not a directory`);
  }
  return directory;
}
