import { plainText, safeText } from "@runtime-cloud/iac-provisioning/engines/plain-text";
import { scrubber } from "@runtime-cloud/iac-provisioning/engines/scrub";
import { expect, test } from "@jest/globals";

const MASK = "(sensitive value)";

test.each([
  ["as it is", "pass=s3cr3t-value!", `pass=${MASK}!`],
  ["in base64", `pass=${Buffer.from("s3cr3t-value").toString("base64")}`, `pass=${MASK}`],
  ["as JSON text", 'pass="a\\"quoted\\nsecret"', `pass="${MASK}"`],
  ["line by line", "read: -----a-line-of-a-key-----", `read: ${MASK}`],
  ["broken by a terminal sequence", "pass=s3cr3t\u001b[31m-value", `pass=${MASK}`],
])("a secret is scrubbed %s", (_, text, clean) => {
  const scrub = scrubber(["s3cr3t-value", 'a"quoted\nsecret', "begin\n-----a-line-of-a-key-----\nend"]);
  expect(safeText(text, scrub)).toBe(clean);
});

test("a longer secret is scrubbed whole though a shorter one is part of it", () => {
  expect(scrubber(["abcd", "abcd-efgh"]).text("x abcd-efgh y")).toBe(`x ${MASK} y`);
});

test("a secret that is cut by the bound of a line does not show its beginning", () => {
  expect(safeText(`${"x".repeat(10)}s3cr3t-value`, scrubber(["s3cr3t-value"]), 14)).not.toContain("s3cr");
});

test("values too short to be secrets blot nothing out, numbers and keys are scrubbed as well", () => {
  expect(scrubber(["1", ""]).text("step 1 of 11")).toBe("step 1 of 11");
  expect(scrubber(["424242"]).json({ pin: 424242, "k-424242": [true, null] })).toEqual({
    pin: MASK,
    [`k-${MASK}`]: [true, null],
  });
});

test("terminal sequences and control characters are gone, a long text is cut and says so", () => {
  expect(plainText("\u001b[1;31mred\u001b[0m \u001b]0;title\u0007and\u0000\r\u009b plain\tend")).toBe(
    "red and plain\tend",
  );
  expect(plainText("abcdef", 3)).toBe("abc… (3 more characters)");
});
