import { fileURLToPath } from "node:url";

/** A git-ignored folder of this repository in which a local server keeps its data: `.data/<name>`. */
export function dataFolder(name: string): string {
  return fileURLToPath(new URL(`../../../.data/${name}`, import.meta.url));
}
