import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { documentGenerator, staleDocuments } from "../../tools/gen/documents.ts";
import type { GeneratedDocument } from "../../tools/gen/generator.ts";

const page: GeneratedDocument = { path: "docs/page.md", inputs: [], render: () => Promise.resolve("one\n") };
const folder: GeneratedDocument = {
  path: "schemas",
  inputs: [],
  render: () => Promise.resolve(new Map([["a.json", "{}\n"]])),
};

let root: string;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "runtime-cloud-test-"));
  await documentGenerator(page).run(root);
  await documentGenerator(folder).run(root);
});

afterEach(() => rmSync(root, { recursive: true }));

test("what was just written isn't stale", async () => {
  expect(await staleDocuments(root, [page, folder])).toEqual([]);
});

test.each([
  ["a page was edited", "docs/page.md", () => writeFileSync(join(root, "docs/page.md"), "two\n")],
  ["a page is missing", "docs/page.md", () => rmSync(join(root, "docs/page.md"))],
  ["a folder's file was edited", "schemas", () => writeFileSync(join(root, "schemas/a.json"), "[]\n")],
  ["a folder has one file too many", "schemas", () => writeFileSync(join(root, "schemas/b.json"), "{}\n")],
  ["a folder is missing", "schemas", () => rmSync(join(root, "schemas"), { recursive: true })],
])("names the document when %s", async (_when, path, change) => {
  change();
  expect(await staleDocuments(root, [page, folder])).toEqual([path]);
});

test("a folder is written without the files that its sources no longer give", async () => {
  writeFileSync(join(root, "schemas/gone.json"), "{}\n");
  await documentGenerator(folder).run(root);
  expect(readdirSync(join(root, "schemas"))).toEqual(["a.json"]);
});
