import { plainText, safeText } from "@runtime-cloud/iac-provisioning/engines/redaction/plain-text";
import { scrubber } from "@runtime-cloud/iac-provisioning/engines/redaction/scrub";
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

const AWKWARD = 's3cret <"${key}"> & more';

test.each([
  ["as the JSON of Go's encoder", 's3cret \\u003c\\"${key}\\"\\u003e \\u0026 more'],
  ["as an HCL string", 's3cret <\\"$${key}\\"> & more'],
  ["as part of a URL", encodeURIComponent(AWKWARD)],
  ["as a form's value", new URLSearchParams({ a: AWKWARD }).toString().slice(2)],
  ["in base64 of a URL", Buffer.from(AWKWARD).toString("base64url")],
])("a secret full of signs is scrubbed %s", (_, spelled) => {
  expect(scrubber([AWKWARD]).text(`<${spelled}>`)).toBe(`<${MASK}>`);
});

test.each(["", "u", "us", "user:"])("a secret is scrubbed inside the base64 of a longer text, after %j", (before) => {
  const secret = "s3cret-of-a-registry";
  const encoded = Buffer.from(`${before}${secret}@host`).toString("base64");
  const clean = scrubber([secret]).text(encoded);
  expect(clean).toContain(MASK);
  // No run of its bytes survives but for what shares a character with its neighbours.
  const left = clean.split(MASK).map((piece) => Buffer.from(piece, "base64").toString("latin1"));
  for (const piece of left) expect(piece).not.toMatch(/s3c|cre|ret|reg|str|try/);
});

test("a secret of several lines is scrubbed whole, and line by line where they are indented or told apart", () => {
  const key = "-----BEGIN KEY-----\r\n  first-line-of-it\r\n  second-line-of-it\r\n-----END KEY-----";
  const { text } = scrubber([key]);
  expect(text(`<${key}>`)).toBe(`<${MASK}>`);
  expect(text("local-exec:     first-line-of-it")).toBe(`local-exec:     ${MASK}`);
  expect(text("a\n  second-line-of-it\n")).toBe(`a\n  ${MASK}\n`);
});

test("a secret with control characters is scrubbed where these are gone", () => {
  expect(safeText("pass=a\u0001bcdef.", scrubber(["a\u0001bcdef"]))).toBe(`pass=${MASK}.`);
});

test("a value of white space is no secret, however long", () => {
  expect(scrubber(["        "]).text("        indented")).toBe("        indented");
});

test("ten thousand secrets are looked for in twenty thousand lines within seconds", () => {
  const secrets = Array.from({ length: 10_000 }, (_, index) => `AKIA${(index * 7919) % 10_007}-secret-${index}`);
  const { text } = scrubber(secrets);
  const begun = process.cpuUsage();
  let scrubbed = 0;
  for (let line = 0; line < 20_000; line += 1) {
    const clear = `module.m["k"].aws_instance.x[${line}]: AKIA Creating... ${secrets[line] ?? "nothing"} [id=i-${line}]`;
    if (text(clear).includes(MASK)) scrubbed += 1;
  }
  const { user, system } = process.cpuUsage(begun);
  expect(scrubbed).toBe(secrets.length);
  expect((user + system) / 1_000).toBeLessThan(5_000);
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
  expect(plainText("ab😀", 3)).toBe("ab\ufffd… (1 more characters)");
});
