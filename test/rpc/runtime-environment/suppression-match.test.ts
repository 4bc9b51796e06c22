import { expect, test } from "@jest/globals";
import {
  coversAll,
  matchesPattern,
  type RuleScope,
} from "@runtime-cloud/runtime-environment/suppression/suppression-match";

test.each([
  ["", "anything", true],
  ["*", "", true],
  ["web", "web", true],
  ["web", "web2", false],
  ["web*", "web", true],
  ["*web", "my-web", true],
  ["*web", "web-1", false],
  ["module.*.aws_vm.*", "module.net.aws_vm.a[0]", true],
  ["module.*.aws_vm.*", "module.aws_vm.a", false],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["ab*ba", "aba", false],
  ["ab*ba", "abba", true],
  ["a**b", "a-b", true],
  ["*a*", "bcd", false],
])("pattern %j matches %j: %j", (pattern, text, isMatch) => {
  expect(matchesPattern(pattern, text)).toBe(isMatch);
});

test.each([".", ".+", "a|b", "(a)", "[ab]", "^a", "a$", "a?", "\\w"])(
  "%j stands for itself, as nothing but a star does otherwise",
  (pattern) => {
    expect(matchesPattern(pattern, "a")).toBe(false);
    expect(matchesPattern(`*${pattern}*`, `x${pattern}y`)).toBe(true);
  },
);

test("a pattern that would keep a backtracking search busy for ever is matched at a glance", () => {
  const began = performance.now();
  expect(matchesPattern(`${"a*".repeat(249)}b`, "a".repeat(500))).toBe(false);
  expect(performance.now() - began).toBeLessThan(1_000);
});

test("a rule without kinds covers all when its patterns are empty or nothing but stars", () => {
  const scope = (changes: Partial<RuleScope>) => ({ kinds: [], resourcePattern: "", attributePattern: "", ...changes });
  expect(coversAll(scope({}))).toBe(true);
  expect(coversAll(scope({ resourcePattern: "*", attributePattern: "**" }))).toBe(true);
  expect(coversAll(scope({ kinds: ["VERSION_MISMATCH"] }))).toBe(false);
  expect(coversAll(scope({ resourcePattern: "a*" }))).toBe(false);
  expect(coversAll(scope({ attributePattern: "*.tags" }))).toBe(false);
});
