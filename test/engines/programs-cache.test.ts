import { randomUUID } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { cachedProgram, type ProgramCache } from "@runtime-cloud/iac-provisioning/programs/program-cache";
import {
  programDigest,
  type ProgramFile,
  readProgramFiles,
} from "@runtime-cloud/iac-provisioning/programs/program-files";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { afterEach, beforeEach, expect, test } from "@jest/globals";

const files: ProgramFile[] = [
  { path: "main.tf", content: Buffer.from("# main") },
  { path: "modules/a/main.tf", content: Buffer.from("# a") },
];
const digest = programDigest(files);
const fetch = () => Promise.resolve(files);

let directory: string;
let cache: ProgramCache;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "program-cache-"));
  cache = { directory: path.join(directory, "programs"), most: 2, newId: randomUUID, clock: systemClock };
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

const HOUR_MS = 3_600_000;
const contentOf = (name: string) => [{ path: "main.tf", content: Buffer.from(name) }];
/** Has a program there, whose last use is so many hours ago; returns the name of its directory. */
async function cached(name: string, hoursAgo: number): Promise<string> {
  const content = contentOf(name);
  const { directory: program } = await cachedProgram(cache, programDigest(content), () => Promise.resolve(content));
  await aged(program, hoursAgo);
  return path.basename(program);
}

async function aged(file: string, hoursAgo: number): Promise<void> {
  const usedAt = new Date(systemClock.now().getTime() - hoursAgo * HOUR_MS);
  await utimes(file, usedAt, usedAt);
}

test("what is more than the cache may hold goes, the least recently used first", async () => {
  const first = await cached("first", 3);
  const second = await cached("second", 2);
  expect((await readdir(cache.directory)).sort()).toEqual([first, second].sort());
  // Used again, the first one is the newer of the two.
  await cached("first", 1);
  const third = await cached("third", 0);
  expect((await readdir(cache.directory)).sort()).toEqual([first, third].sort());
});

test("no program goes that was used just now, however many there are", async () => {
  const used = [await cached("a", 0), await cached("b", 0), await cached("c", 0), await cached("d", 0)];
  expect((await readdir(cache.directory)).sort()).toEqual(used.sort());
});

test("what a dead process began to write goes once nobody can be writing it any more", async () => {
  for (const [name, hoursAgo] of [
    ["dead", 1],
    ["writing", 0],
  ] as const) {
    await mkdir(path.join(cache.directory, `.${name}`), { recursive: true });
    await aged(path.join(cache.directory, `.${name}`), hoursAgo);
  }
  const program = await cached("a", 0);
  expect((await readdir(cache.directory)).sort()).toEqual([".writing", program].sort());
});
