import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

import type { GeneratedDocument, Generator } from "./generator.ts";

const CONTRACTS_PACKAGE = fileURLToPath(new URL("../../libs/contracts/package.json", import.meta.url));
const CONTRACT = ["proto", "libs/contracts/src", "libs/contracts/package.json", "tools/gen"];

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
  {
    path: "docs/events.md",
    inputs: CONTRACT,
    render: async () => (await import("./events-page.ts")).eventsPage(await contract()),
  },
  {
    path: "docs/asyncapi.yaml",
    inputs: CONTRACT,
    render: async () => (await import("./asyncapi.ts")).asyncapiDocument(await contract(), await contractVersion()),
  },
  {
    path: "libs/contracts/schemas",
    inputs: CONTRACT,
    render: async () => (await import("./event-schema.ts")).eventSchemaFiles(await contract()),
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
      const content = await document.render();
      if (typeof content !== "string") return writeFolder(path, content);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
    },
  };
}

/** The paths of the committed documents that differ from what their sources say. */
export async function staleDocuments(root: string, among = documents): Promise<string[]> {
  const comparisons = among.map(async (document) => {
    const path = join(root, document.path);
    const content = await document.render();
    const fresh = typeof content === "string" ? content === (await committedText(path)) : await isFolder(path, content);
    return fresh ? [] : [document.path];
  });
  return (await Promise.all(comparisons)).flat();
}

/** The generated types must be there before what reads them is imported. */
async function contract() {
  return (await import("./contract.ts")).contract();
}

async function contractVersion(): Promise<string> {
  return z.object({ version: z.string() }).parse(JSON.parse(await readFile(CONTRACTS_PACKAGE, "utf8"))).version;
}

async function writeFolder(path: string, files: ReadonlyMap<string, string>): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true });
  for (const [name, text] of files) await writeFile(join(path, name), text);
}

async function isFolder(path: string, files: ReadonlyMap<string, string>): Promise<boolean> {
  const committed = await readdir(path).catch((): string[] => []);
  if (committed.length !== files.size) return false;
  const same = await Promise.all(
    [...files].map(async ([name, text]) => (await committedText(join(path, name))) === text),
  );
  return same.every(Boolean);
}

async function committedText(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
