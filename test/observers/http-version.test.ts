import { expect, test } from "@jest/globals";
import { versionIn } from "@runtime-cloud/runtime-environment/observers/http/http-version";

test.each([
  ['{"version":"1.4.0"}', "", "1.4.0"],
  ['{"version":7}', "", "7"],
  ['{"build":{"version":" 1.4.0 "}}', "build.version", "1.4.0"],
  ['{"versions":["a","b"]}', "versions.1", "b"],
  ['"1.4.0"', "", "1.4.0"],
  ["1.4.0\n", "", "1.4.0"],
  ["1.10", "", "1.10"],
  ["v2026-11-30+g1234567", "", "v2026-11-30+g1234567"],
])("reads %s at %j as %s", (body, field, version) => {
  expect(versionIn(body, field)).toBe(version);
});

test.each([
  ["", "", "no text of 1 to 128 characters in the answer"],
  [`<!doctype html>${"x".repeat(200)}`, "", "no text of 1 to 128 characters in the answer"],
  ["1.4.0\nbuilt today", "", "no text of 1 to 128 characters in the answer"],
  ["1.4.0\u0000", "", "no text of 1 to 128 characters in the answer"],
  ["{}", "", "no text of 1 to 128 characters at version"],
  ['{"version":{"major":1}}', "", "no text of 1 to 128 characters at version"],
  ['{"version":null}', "version.major", "no text of 1 to 128 characters at version.major"],
  ["{}", "constructor.name", "no text of 1 to 128 characters at constructor.name"],
  ["1.4.0", "build.version", "no JSON object, so nothing is at build.version"],
])("finds no version in %j at %j", (body, field, text) => {
  expect(() => versionIn(body, field)).toThrow(text);
});
