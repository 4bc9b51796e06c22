import { byteReader } from "@runtime-cloud/iac-provisioning/engines/sandbox/read-output";
import { run } from "@runtime-cloud/iac-provisioning/engines/sandbox/subprocess";
import { expect, test } from "@jest/globals";

import { NEVER } from "./engine-bench.ts";

async function shell(script: string, take: (bytes: Uint8Array) => void) {
  const { stdout, refusal } = byteReader(take);
  const command = { binary: "/bin/sh", args: ["-c", script], directory: "/", environment: {}, signals: NEVER, stdout };
  const lines: string[] = [];
  const running = run(command, ({ stream, line }): never[] => {
    lines.push(`${stream}: ${line}`);
    return [];
  });
  const { value: exit } = await running.next();
  return { exit, lines, refusal: refusal() };
}

test("a command's stdout is read byte by byte, and its stderr line by line", async () => {
  const bytes: Uint8Array[] = [];
  const { exit, lines, refusal } = await shell("printf 'a\\377\\nb'; echo said >&2", (piece) => bytes.push(piece));
  expect(Buffer.concat(bytes)).toEqual(Buffer.from([0x61, 0xff, 0x0a, 0x62]));
  expect(lines).toEqual(["stderr: said"]);
  expect(exit.code).toBe(0);
  expect(refusal).toBeUndefined();
});

test("a command whose output is refused ends, though it would never stop printing", async () => {
  let taken = 0;
  const { exit, refusal } = await shell("exec yes", (bytes) => {
    taken += bytes.length;
    if (taken > 100_000) throw new Error("too much");
  });
  expect(exit.code).not.toBe(0);
  expect(refusal).toEqual(new Error("too much"));
});
