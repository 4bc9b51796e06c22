import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

import type { GeneratedDocument, Generator } from "./generator.ts";

/** The committed files that `npm run gen` writes and `npm run gen -- --check` compares. */
export const documents: readonly GeneratedDocument[] = [
  {
    path: "docs/lifecycles.md",
    inputs: ["libs/state-machines/src"],
    render: async () => (await import("@runtime-cloud/state-machines/lifecycle-docs")).lifecycleDocs(),
  },
  {
    path: "docs/configuration.md",
    inputs: ["libs/service-kit/src", "services", "tools/gen/configuration.ts"],
    render: async () => (await import("./configuration.ts")).configurationDocs(),
  },
];

/** The step that writes a document; editing the written file by hand makes it run again. */
export function documentGenerator(document: GeneratedDocument): Generator {
  return {
    name: document.path,
    inputs: document.inputs,
    outputs: [document.path],
    async run(root) {
      const path = join(root, document.path);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, await document.render());
    },
  };
}

/** The paths of the committed documents that differ from what their sources say. */
export async function staleDocuments(root: string): Promise<string[]> {
  const comparisons = documents.map(async (document) => {
    const committed = await readFile(join(root, document.path), "utf8").catch(() => undefined);
    return committed === (await document.render()) ? [] : [document.path];
  });
  return (await Promise.all(comparisons)).flat();
}
