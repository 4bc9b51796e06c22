import { createFileRegistry, type DescFile, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { getComments } from "@bufbuild/protoplugin";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { runNode } from "../run.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const OURS = "runtimecloud/";

/**
 * The project's proto files with their comments, by path. The generated TypeScript has no comments in its descriptors,
 * so they come from an image that buf builds.
 */
export async function commentedFiles(): Promise<DescFile[]> {
  const set = fromBinary(FileDescriptorSetSchema, await image());
  return [...createFileRegistry(set).files]
    .filter(({ name }) => name.startsWith(OURS))
    .sort((one, other) => one.name.localeCompare(other.name));
}

/** The comment above a declaration, its lines joined to one. */
export function prose(desc: Parameters<typeof getComments>[0]): string {
  return (getComments(desc).leading ?? "").replaceAll(/\s+/g, " ").trim();
}

async function image(): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), "runtime-cloud-image-"));
  try {
    const path = join(folder, "image.binpb");
    await runNode(root, ["node_modules/@bufbuild/buf/bin/buf", "build", "-o", path]);
    return await readFile(path);
  } finally {
    await rm(folder, { recursive: true });
  }
}
