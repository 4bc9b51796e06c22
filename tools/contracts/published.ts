import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { type Finished, runNode, tryNode } from "../run.ts";

const FOLDER = "libs/contracts/published";
const IMAGE = /^(.+)\.binpb$/;
const BUF = fileURLToPath(new URL("../../node_modules/@bufbuild/buf/bin/buf", import.meta.url));

/** The contract as it was published last: a Buf image, named after its version. */
export interface Published {
  version: string;
  /** The image's path, relative to the repository. */
  image: string;
}

/** Undefined before the first publication. */
export async function lastPublished(root: string): Promise<Published | undefined> {
  const names = await readdir(join(root, FOLDER)).catch(() => []);
  const images = names.filter((name) => IMAGE.test(name));
  const [name, ...others] = images;
  if (name === undefined) return undefined;
  if (others.length > 0) throw new Error(`${FOLDER} holds ${images.join(", ")}: keep the one of the last version`);
  return { version: name.replace(IMAGE, "$1"), image: `${FOLDER}/${name}` };
}

/** Takes the proto files, as they are now, for what is published as `version`. */
export async function markPublished(root: string, version: string): Promise<Published> {
  const before = await lastPublished(root);
  const image = `${FOLDER}/${version}.binpb`;
  await mkdir(join(root, FOLDER), { recursive: true });
  await runNode(root, [BUF, "build", "--exclude-source-info", "--output", image]);
  if (before && before.image !== image) await rm(join(root, before.image));
  return { version, image };
}

/** Whether who uses the published messages and services can go on with those of now, and if not, every reason. */
export function comparedBy(root: string, { image }: Published): Promise<Finished> {
  return tryNode(root, [BUF, "breaking", "--against", image]);
}
