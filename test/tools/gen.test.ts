import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { isFresh, refresh } from "../../tools/gen/fingerprint.ts";
import type { Generator } from "../../tools/gen/generator.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "runtime-cloud-test-"));
  mkdirSync(join(root, "source"));
  writeFileSync(join(root, "source/a.proto"), "one");
});

afterEach(() => rmSync(root, { recursive: true }));

test("a generator is skipped while its inputs and outputs are as it left them", async () => {
  expect(isFresh(root, generator())).toBe(false);
  await refresh(root, generator());
  expect(isFresh(root, generator())).toBe(true);
});

test.each([
  ["an input changed", () => writeFileSync(join(root, "source/a.proto"), "two")],
  ["an input was added", () => writeFileSync(join(root, "source/b.proto"), "")],
  ["an output was removed", () => rmSync(join(root, "output.ts"))],
])("it runs again when %s", async (_when, change) => {
  await refresh(root, generator());
  change();
  expect(isFresh(root, generator())).toBe(false);
});

test("one that failed runs again, even where an earlier run had succeeded", async () => {
  await refresh(root, generator());
  const failing = { ...generator(), run: () => Promise.reject(new Error("no")) };
  await expect(refresh(root, failing)).rejects.toThrow("no");
  expect(isFresh(root, generator())).toBe(false);
});

test.each(["--help", "-h"])("gen %s prints how it is used and succeeds", (option) => {
  const program = fileURLToPath(new URL("../../tools/gen.ts", import.meta.url));
  const command = ["--import", "tsx", program, option];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: "utf8" });
  expect(stdout).toMatch(/^Usage: npm run gen/);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
});

function generator(): Generator {
  return {
    name: "copies: of source",
    inputs: ["source"],
    outputs: ["output.ts"],
    async run(folder) {
      writeFileSync(join(folder, "output.ts"), "");
    },
  };
}
