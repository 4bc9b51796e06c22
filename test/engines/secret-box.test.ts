import { parseEncryptionKeys, SealedValueRefused, secretBox } from "@runtime-cloud/iac-provisioning/state/secret-box";
import { describe, expect, test } from "@jest/globals";
import { randomBytes } from "node:crypto";

const key = (id: string) => ({ id, key: randomBytes(32) });

test("opens what it sealed, and seals the same twice differently", () => {
  const box = secretBox([key("a")]);
  const plain = Buffer.from("the state");
  const [one, two] = [box.seal(plain, "state", "x"), box.seal(plain, "state", "x")];
  expect(box.open(one, "state", "x")).toEqual(plain);
  expect(one.equals(two)).toBe(false);
  expect(one.includes("state")).toBe(false);
});

test("a sealed value opens neither for another purpose, nor for another owner, nor when any byte is changed", () => {
  const box = secretBox([key("a")]);
  const sealed = box.seal(Buffer.from("plain"), "state", "x");
  expect(() => box.open(sealed, "plan", "x")).toThrow(SealedValueRefused);
  expect(() => box.open(sealed, "state", "y")).toThrow(SealedValueRefused);
  for (let at = 0; at < sealed.length; at += 1) {
    const tampered = Buffer.from(sealed);
    tampered.writeUInt8(tampered.readUInt8(at) ^ 1, at);
    expect(() => box.open(tampered, "state", "x")).toThrow(SealedValueRefused);
  }
  for (let length = 0; length < sealed.length; length += 1) {
    expect(() => box.open(sealed.subarray(0, length), "state", "x")).toThrow(SealedValueRefused);
  }
});

test("after a rotation the old key still opens and no longer seals", () => {
  const [old, next] = [key("old"), key("next")];
  const sealed = secretBox([old]).seal(Buffer.from("plain"), "state", "x");
  const rotated = secretBox([next, old]);
  expect(rotated.open(sealed, "state", "x").toString()).toBe("plain");
  expect(() => secretBox([old]).open(rotated.seal(Buffer.from("plain"), "state", "x"), "state", "x")).toThrow(
    'sealed under key "next", which is not configured',
  );
});

describe("parseEncryptionKeys", () => {
  const encoded = randomBytes(32).toString("base64");

  test("reads keys in their order", () => {
    expect(parseEncryptionKeys(`b:${encoded}, a:${encoded}`).map(({ id }) => id)).toEqual(["b", "a"]);
  });

  test.each([
    ["", "must be id:base64"],
    [encoded, "must be id:base64"],
    [`a b:${encoded}`, "must be id:base64"],
    ["a:c2hvcnQ=", "key a must be 32 bytes"],
    [`a:${encoded.replace(/^./, "*")}`, "key a must be 32 bytes"],
    [`a:${encoded},a:${encoded}`, "two keys with the id a"],
  ])("refuses %j without repeating a key", (text, message) => {
    const parse = () => parseEncryptionKeys(text);
    expect(parse).toThrow(message);
    expect(parse).not.toThrow(encoded.slice(4, 20));
  });
});
