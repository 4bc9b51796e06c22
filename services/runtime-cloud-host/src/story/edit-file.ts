import { readFile, rename, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Edits a file as an editor does: whoever looks meanwhile sees it as it was or as it is, and never half of it. */
export async function editFile(file: string, edit: (text: string) => string): Promise<void> {
  // Observers leave hidden files alone.
  const draft = join(dirname(file), `.${basename(file)}.draft`);
  await writeFile(draft, edit(await readFile(file, "utf8")));
  await rename(draft, file);
}
