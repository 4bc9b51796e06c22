import { withFolderLock } from "@runtime-cloud/local-servers/folder-lock";
import { announcePresence } from "@runtime-cloud/local-servers/presence";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";

const TIMEOUT_MS = 10_000;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runtime-cloud-test-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

test("one at a time does its work, and one file is left", async () => {
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
  expect(readdirSync(folder)).toHaveLength(1);
});

test("is free again after work that failed", async () => {
  const failing = withFolderLock(folder, TIMEOUT_MS, () => Promise.reject(new Error("no")));
  await expect(failing).rejects.toThrow("no");
  expect(await withFolderLock(folder, TIMEOUT_MS, () => Promise.resolve("done"))).toBe("done");
});

test("waits for a holder that is there, and takes over from one that is gone", async () => {
  const holder = await announcePresence();
  writeFileSync(join(folder, "7.lock"), holder.proof);
  const work = () => Promise.resolve("done");
  await expect(withFolderLock(folder, 100, work)).rejects.toThrow(`who else is starting a server in ${folder}`);

  holder.end();
  expect(await withFolderLock(folder, TIMEOUT_MS, work)).toBe("done");
  expect(readdirSync(folder)).toEqual(["8.lock"]);
});

test("takes over from a holder whose port another program has now", async () => {
  const other = await announcePresence();
  writeFileSync(join(folder, "1.lock"), other.proof.replace(/ .*/, " token-of-the-killed"));
  expect(await withFolderLock(folder, TIMEOUT_MS, () => Promise.resolve("done"))).toBe("done");
  other.end();
});
