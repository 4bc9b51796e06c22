import { cp, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { runNode } from "../run.ts";
import { manifest } from "./manifest.ts";
import { npm } from "./npm.ts";
import { makeFolder } from "./output-folder.ts";

/**
 * Packs the contracts for npm into the folder `out`, which is made if absent: compiled JavaScript with declarations,
 * proto files, JSON schemas, catalogue and README. Needs the generated protobuf types. Answers the tarball's path.
 */
export async function pack(root: string, out: string): Promise<string> {
  await makeFolder(out);
  const stage = await mkdtemp(join(tmpdir(), "runtime-cloud-contracts-"));
  try {
    await fill(root, stage);
    return join(out, await npm(stage, ["pack", "--silent", "--pack-destination", out]));
  } finally {
    await rm(stage, { recursive: true });
  }
}

async function fill(root: string, stage: string): Promise<void> {
  const library = join(root, "libs/contracts");
  const config = join(library, "tsconfig.publish.json");
  await runNode(root, ["node_modules/typescript/bin/tsc", "-p", config, "--outDir", join(stage, "dist")]);
  const sources = [...(await typescriptIn(join(library, "src"))), ...(await typescriptIn(join(library, "generated")))];
  await writeFile(join(stage, "package.json"), `${JSON.stringify(await manifest(root, sources), undefined, 2)}\n`);
  await cp(join(root, "proto"), join(stage, "proto"), { recursive: true });
  for (const part of ["README.md", "catalogue.json", "schemas"]) {
    await cp(join(library, part), join(stage, part), { recursive: true });
  }
}

async function typescriptIn(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => name.endsWith(".ts")).map((name) => join(folder, name));
}
