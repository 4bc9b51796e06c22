import { withFolderLock } from "@runtime-cloud/local-servers/folder-lock";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { mkdirSync, mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";

const TIMEOUT_MS = 10_000;

let parent: string;
let folder: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "runtime-cloud-test-"));
  folder = join(parent, "locked");
  mkdirSync(folder);
});

afterEach(() => rmSync(parent, { recursive: true }));

test("one at a time does its work", async () => {
  let working = 0;
  const seen = await Promise.all(
    Array.from({ length: 8 }, () =>
      withFolderLock(folder, TIMEOUT_MS, async () => {
        working++;
        await turn();
        return working--;
      }),
    ),
  );
  expect(seen).toEqual(Array.from({ length: 8 }, () => 1));
});

test("is free again after work that failed", async () => {
  const failing = withFolderLock(folder, TIMEOUT_MS, () => Promise.reject(new Error("no")));
  await expect(failing).rejects.toThrow("no");
  expect(await withFolderLock(folder, TIMEOUT_MS, () => Promise.resolve("done"))).toBe("done");
});

test("waits for a holder that is there, no longer than it was told", async () => {
  await withFolderLock(folder, TIMEOUT_MS, async () => {
    await expect(withFolderLock(folder, 100, () => Promise.resolve("never"))).rejects.toThrow(/already being held/);
  });
});

test("takes over from a holder that was killed", async () => {
  const left = `${folder}.lock`;
  mkdirSync(left);
  const longAgo = new Date("2026-01-01T00:00:00Z");
  utimesSync(left, longAgo, longAgo);
  expect(await withFolderLock(folder, TIMEOUT_MS, () => Promise.resolve("done"))).toBe("done");
});
