import { expect, test } from "@jest/globals";
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { z } from "zod";

import { changeOf, planOf, resourceChange } from "./read-plan.ts";

const run = promisify(execFile);

const RESOURCES = 15_000;
/** Twice what the reading takes; the document's tree alone has several times as much. */
const HEAP_MB = 128;
const SERVICE_MB = 400;
const PATIENCE_MS = 120_000;

test(
  "a plan of 15,000 resources is read in a heap that could not hold it, with every count right and no secret in it",
  async () => {
    const script = path.join(import.meta.dirname, "large-plan.ts");
    const args = ["--import", "tsx", `--max-old-space-size=${HEAP_MB}`, script, String(RESOURCES)];
    const { stdout } = await run(process.execPath, args, { timeout: PATIENCE_MS });
    const found = z.looseObject({ maxRssMb: z.number() }).parse(JSON.parse(stdout));
    expect(found).toMatchObject({
      changes: RESOURCES,
      resources: RESOURCES,
      secrets: RESOURCES,
      summary: { adds: 3_000, changes: 3_000, deletes: 3_000, replaces: 3_000 },
      destructive: true,
      leaks: 0,
      // The same on every machine and in every run.
      digest: "sha256:6ce717675f0f106c1531d601f439bf85ef2c135911929006677860f71ffd1ff6",
    });
    expect(found.maxRssMb).toBeLessThan(SERVICE_MB);
  },
  PATIENCE_MS,
);

test("a long text of an attribute is cut and says by how much, but not before it is scrubbed", () => {
  const secret = "s3cret-at-the-edge-of-the-cut";
  const after = { token_value: secret, log: `${"x".repeat(16_330)}${secret}${"y".repeat(2_000)}` };
  const change = { actions: ["create"], before: null, after, after_sensitive: { token_value: true } };
  const shown = changeOf(planOf({ resource_changes: [resourceChange("vm.a", change)] }), "vm.a");
  const log = z.string().parse(shown.after?.["log"]);
  expect(log.length).toBeLessThanOrEqual(16 * 1024);
  expect(log).toMatch(/^x+\(sensitive v[a-z ]*\(… \d+ more characters\)$/);
  expect(JSON.stringify(shown)).not.toContain("s3cret");
});

test("of a change that is too large the largest attributes are left out, with a note, and no others", () => {
  const list = (count: number) => Array.from({ length: count }, (_, index) => `entry ${index} of the list`);
  const before = { id: "i-1", small: "kept", large: list(20_000) };
  const after = { id: "i-1", small: "kept", large: list(20_001), medium: list(1_000) };
  const shown = changeOf(
    planOf({ resource_changes: [resourceChange("vm.a", { actions: ["update"], before, after })] }),
    "vm.a",
  );
  expect(shown).toMatchObject({
    before: { id: "i-1", small: "kept", large: expect.stringMatching(/^\(left out: \d+ bytes\)$/) },
    after: { id: "i-1", small: "kept", large: expect.stringMatching(/^\(left out: \d+ bytes\)$/) },
  });
  expect(shown.after?.["medium"]).toHaveLength(1_000);
  expect(JSON.stringify(shown).length).toBeLessThan(256 * 1024);
});

test("characters that the database cannot hold are replaced, in texts and in names", () => {
  const after = { note: "a\u0000b\ud800c😀", ["n\u0000"]: 1 };
  const shown = changeOf(
    planOf({ resource_changes: [resourceChange("vm.a", { actions: ["create"], after })] }),
    "vm.a",
  );
  expect(shown.after).toEqual({ note: "a\ufffdb\ufffdc😀", ["n\ufffd"]: 1 });
});

test("a map with a member of any name is shown as it is", () => {
  const tags = Object.fromEntries([
    ["__proto__", "a"],
    ["constructor", "b"],
    ["", "c"],
  ]);
  const shown = changeOf(
    planOf({ resource_changes: [resourceChange("vm.a", { actions: ["create"], after: { tags } })] }),
    "vm.a",
  );
  expect(JSON.stringify(shown.after)).toBe('{"tags":{"__proto__":"a","constructor":"b","":"c"}}');
});
