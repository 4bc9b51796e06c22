import { randomUUID } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { cachedProgram } from "@runtime-cloud/iac-provisioning/programs/program-cache";
import {
  programDigest,
  type ProgramFile,
  readProgramFiles,
} from "@runtime-cloud/iac-provisioning/programs/program-files";
import { afterEach, beforeEach, expect, test } from "@jest/globals";

const files: ProgramFile[] = [
  { path: "main.tf", content: Buffer.from("# main") },
  { path: "modules/a/main.tf", content: Buffer.from("# a") },
];
const digest = programDigest(files);
const fetch = () => Promise.resolve(files);

let directory: string;
let cache: { directory: string; newId: () => string };
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "program-cache-"));
  cache = { directory: path.join(directory, "programs"), newId: randomUUID };
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const digestOnDisk = async () => programDigest(await readProgramFiles(path.join(cache.directory, digest.slice(7))));

test("content is written once, under its digest, and nothing else is left", async () => {
  let fetched = 0;
  const counting = () => ((fetched += 1), fetch());
  const first = await cachedProgram(cache, digest, counting);
  const second = await cachedProgram(cache, digest, counting);
  expect(fetched).toBe(1);
  expect(second).toEqual(first);
  expect(await digestOnDisk()).toBe(digest);
  expect(await readdir(cache.directory)).toEqual([digest.slice(7)]);
});

test.each<[string, (program: string) => Promise<unknown>]>([
  ["a file was changed", (program) => writeFile(path.join(program, "main.tf"), "# evil")],
  ["a file was added", (program) => writeFile(path.join(program, "evil.tf"), "")],
  ["a file was removed", (program) => rm(path.join(program, "main.tf"))],
  [
    "a file became a link",
    (program) => rm(path.join(program, "main.tf")).then(() => symlink("/etc/passwd", path.join(program, "main.tf"))),
  ],
  ["it was emptied", (program) => rm(program, { recursive: true }).then(() => mkdir(program))],
  ["it became a file", (program) => rm(program, { recursive: true }).then(() => writeFile(program, ""))],
  ["the whole cache is gone", (program) => rm(path.dirname(program), { recursive: true })],
])("content is written anew where %s", async (_, tamper) => {
  const { directory: program } = await cachedProgram(cache, digest, fetch);
  await tamper(program);
  expect(await cachedProgram(cache, digest, fetch)).toEqual({ directory: program, files });
  expect(await digestOnDisk()).toBe(digest);
  expect(await readdir(cache.directory)).toEqual([digest.slice(7)]);
});

test("many at once find the same content, over none and over a tampered one", async () => {
  const all = () => Promise.all(Array.from({ length: 8 }, () => cachedProgram(cache, digest, fetch)));
  for (const found of await all()) expect(found.files).toEqual(files);
  await cp(
    path.join(cache.directory, digest.slice(7), "main.tf"),
    path.join(cache.directory, digest.slice(7), "copy.tf"),
  );
  for (const found of await all()) expect(found.files).toEqual(files);
  expect(await digestOnDisk()).toBe(digest);
  expect(await readdir(cache.directory)).toEqual([digest.slice(7)]);
});
