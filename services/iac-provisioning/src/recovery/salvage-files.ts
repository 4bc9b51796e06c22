import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";

const NAME = /^salvaged-([0-9a-f-]{36})\.sealed$/;
const runId = z.guid();

/** A sealed state that could not be kept in the database. */
export interface SalvageFile {
  runId: string;
  sealed: Uint8Array;
  remove(): Promise<void>;
}

/** Keeps a sealed state on disk, until the database takes it. */
export async function writeSalvageFile(workRoot: string, id: string, sealed: Uint8Array): Promise<void> {
  const file = path.join(workRoot, `salvaged-${runId.parse(id)}.sealed`);
  await writeFile(`${file}.part`, sealed, { mode: 0o600, flush: true });
  await rename(`${file}.part`, file);
}

export async function readSalvageFiles(workRoot: string): Promise<SalvageFile[]> {
  const names = await readdir(workRoot).catch((): string[] => []);
  const files: SalvageFile[] = [];
  for (const name of names) {
    const [, id] = NAME.exec(name) ?? [];
    if (id === undefined) continue;
    const file = path.join(workRoot, name);
    files.push({ runId: id, sealed: await readFile(file), remove: () => rm(file, { force: true }) });
  }
  return files;
}
