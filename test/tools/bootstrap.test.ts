import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { alone } from "../../tools/bootstrap/alone.mjs";
import { isInstalled } from "../../tools/bootstrap/installed.mjs";

const BOOTSTRAP = fileURLToPath(new URL("../../tools/bootstrap.mjs", import.meta.url));
const tool = { version: "1.0.0", integrity: "sha512-a" };

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "runtime-cloud-test-"));
});

afterEach(() => rmSync(root, { recursive: true }));

test.each([
  ["nothing is installed", { "node_modules/tool": tool }, undefined, false],
  ["all that is asked for is installed", { "": {}, "node_modules/tool": tool }, { "node_modules/tool": tool }, true],
  [
    "another version is installed",
    { "node_modules/tool": { ...tool, version: "1.0.1" } },
    { "node_modules/tool": tool },
    false,
  ],
  [
    "a package is missing",
    { "node_modules/tool": tool, "node_modules/more": tool },
    { "node_modules/tool": tool },
    false,
  ],
  ["only what is for another system is missing", { "node_modules/tool": { ...tool, optional: true } }, {}, true],
])("where %s, the answer is right", (_what, wanted, installed, answer) => {
  writeFileSync(join(root, "package-lock.json"), JSON.stringify({ packages: wanted }));
  mkdirSync(join(root, "node_modules"));
  if (installed !== undefined) {
    writeFileSync(join(root, "node_modules/.package-lock.json"), JSON.stringify({ packages: installed }));
  }
  expect(isInstalled(root)).toBe(answer);
});

test("two that prepare at once take turns", async () => {
  const lock = join(root, "lock");
  let inside = 0;
  const visit = async () => {
    inside++;
    expect(inside).toBe(1);
    await Promise.resolve();
    inside--;
  };
  await Promise.all([alone(lock, visit), alone(lock, visit)]);
  expect(existsSync(lock)).toBe(false);
});

test("a lock whose owner is gone stops nobody", async () => {
  const lock = join(root, "lock");
  const gone = spawnSync(process.execPath, ["--version"]).pid;
  writeFileSync(lock, String(gone));
  let entered = false;
  await alone(lock, async () => {
    entered = true;
  });
  expect(entered).toBe(true);
});

test("a program that isn't there is named", () => {
  const { status, stderr } = spawnSync(process.execPath, [BOOTSTRAP, "nowhere/main.ts"], { encoding: "utf8" });
  expect(status).toBe(1);
  expect(stderr).toContain("There is no program nowhere/main.ts");
});
