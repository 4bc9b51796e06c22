import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const PACKAGE = "etcd-server";
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/etcd-server", import.meta.url));
const BINARY_IN_PACKAGE = "usr/bin/etcd";
const COMMAND_TIMEOUT_MS = 60_000;
const run = promisify(execFile);

/**
 * The path of `etcd`: the one on the PATH, else Debian's, which is unpacked into a folder that git ignores and not
 * installed. Rejects where there is neither.
 */
export async function findEtcd(): Promise<string> {
  const cached = join(CACHE, BINARY_IN_PACKAGE);
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return [...folders.map((folder) => join(folder, "etcd")), cached].find(isExecutable) ?? (await unpackDebian());
}

async function unpackDebian(): Promise<string> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, "download-"));
  try {
    await downloadInto(folder);
    const archive = (await readdir(folder)).find((name) => name.endsWith(".deb"));
    if (archive === undefined) throw new Error(`apt-get downloaded no package ${PACKAGE}`);
    await run("dpkg-deb", ["-x", archive, "."], { cwd: folder, timeout: COMMAND_TIMEOUT_MS });
    // Whole at once, so that nobody finds half a file.
    await mkdir(join(CACHE, "usr/bin"), { recursive: true });
    await rename(join(folder, BINARY_IN_PACKAGE), join(CACHE, BINARY_IN_PACKAGE));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return join(CACHE, BINARY_IN_PACKAGE);
}

/** A machine that never asked for Debian's list of packages finds none in it. */
async function downloadInto(folder: string): Promise<void> {
  const download = () => run("apt-get", ["download", PACKAGE], { cwd: folder, timeout: COMMAND_TIMEOUT_MS });
  try {
    await download();
  } catch {
    await run("apt-get", ["update"], { timeout: COMMAND_TIMEOUT_MS });
    await download();
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
