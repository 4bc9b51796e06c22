import { expect, test } from "@jest/globals";
import { isPrintable, storableJson, storableText } from "@runtime-cloud/runtime-environment/observers/storable";

test("text is cut without leaving half a character, and holds no U+0000", () => {
  expect(storableText("abc", 2)).toBe("ab");
  expect(storableText("ab😀", 3)).toBe("ab");
  expect(storableText("ab😀", 4)).toBe("ab😀");
  expect(storableText("a\u0000b", 10)).toBe("a\uFFFDb");
});

test("JSON is kept whole, or becomes the beginning of its text", () => {
  const value = { a: [1, "x", null, true] };
  expect(storableJson(value, 100)).toBe(value);
  expect(storableJson(value, 5)).toBe('{"a":…');
});

test("JSON holds no U+0000 in names or values, and keeps what only looks like one", () => {
  expect(storableJson({ "a\u0000": ["\u0000", { b: "\\u0000" }] }, 100)).toEqual({
    "a\uFFFD": ["\uFFFD", { b: "\\u0000" }],
  });
});

test.each([
  ["web", true],
  ["größe 1", true],
  ["a\nb", false],
  ["a\u0000", false],
  ["a\u007f", false],
  ["\ud83d", false],
])("%j shows whole: %s", (text, shows) => {
  expect(isPrintable(text)).toBe(shows);
});
