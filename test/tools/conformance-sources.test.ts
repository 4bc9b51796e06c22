import { expect, test } from "@jest/globals";
import ts from "typescript";

import { handlersOf } from "../../tools/conformance/code-handlers.ts";
import { report } from "../../tools/conformance/report.ts";
import { titlesIn } from "../../tools/conformance/test-titles.ts";

test("reads a service's handlers and a test file's titles out of their sources", () => {
  const source = (text: string) => ts.createSourceFile("source.ts", text, ts.ScriptTarget.Latest);
  const service = source(`
    export const some = defineService({ name: "some", subscriber: "SomeService" });
    const inbox = () => [on(QuotaChangedSchema, "FollowQuota", async () => undefined), emitter.on(other, "data")];
  `);
  expect(handlersOf([service])).toEqual([{ consumer: "SomeService", event: "QuotaChanged", handler: "FollowQuota" }]);
  const tests = source(`
    describe("one", () => test.each([1])("two %s", () => undefined));
    it(\`three\`, () => undefined);
    test.skip("four", () => undefined);
    expect("five").toBe("six");
  `);
  expect(titlesIn(tests)).toEqual(["one", "two %s", "three"]);
});

test("reports a line for each kind and each difference, with their count", () => {
  const kinds = { kind: "events", expected: 44, found: 43, differences: ["QuotaChanged: is missing"] };
  expect(report([kinds])).toBe(
    [
      "        expected  found  differences",
      "events        44     43            1",
      "",
      "  events: QuotaChanged: is missing",
      "1 difference",
    ].join("\n"),
  );
});
