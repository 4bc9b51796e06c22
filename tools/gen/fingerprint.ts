import { createHash, type Hash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import type { Generator } from "./generator.ts";

const STAMPS = "node_modules/.cache/runtime-cloud/gen";

/** Whether the outputs are there and were made from the inputs as they are now. */
export function isFresh(root: string, generator: Generator): boolean {
  const stamp = stampPath(root, generator);
  if (!existsSync(stamp) || !generator.outputs.every((output) => existsSync(join(root, output)))) return false;
  return readFileSync(stamp, "utf8") === fingerprint(root, generator.inputs);
}

/** Runs the generator and remembers what it was made from; a failure leaves it stale. */
export async function refresh(root: string, generator: Generator): Promise<void> {
  const stamp = stampPath(root, generator);
  rmSync(stamp, { force: true });
  const before = fingerprint(root, generator.inputs);
  await generator.run(root);
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, before);
}

function stampPath(root: string, generator: Generator): string {
  return join(root, STAMPS, generator.name.replaceAll(/[^\w.-]+/g, "_"));
}

function fingerprint(root: string, inputs: readonly string[]): string {
  const hash = createHash("sha256");
  for (const input of inputs) addPath(hash, root, input);
  return hash.digest("hex");
}

function addPath(hash: Hash, root: string, path: string): void {
  const absolute = join(root, path);
  if (!existsSync(absolute)) {
    hash.update(`${path}\0absent\0`);
  } else if (statSync(absolute).isDirectory()) {
    for (const entry of readdirSync(absolute).sort()) addPath(hash, root, join(path, entry));
  } else {
    hash.update(`${path}\0`).update(readFileSync(absolute)).update("\0");
  }
}
