import { gzipSync } from "node:zlib";
import { packArchive } from "@runtime-cloud/iac-provisioning/programs/pack-archive";
import { readProgramContent } from "@runtime-cloud/iac-provisioning/programs/program-content";
import { programDigest } from "@runtime-cloud/iac-provisioning/programs/program-files";
import { unpackArchive } from "@runtime-cloud/iac-provisioning/programs/unpack-archive";
import { describe, expect, test } from "@jest/globals";

import { archiveOf, tarOf, type TarEntry, withTypeFlag } from "../_support/program-archive.ts";

const DECLARATION: TarEntry = { name: "program.yaml", content: "engine: terraform\ndescription: x\n" };
const MIB = 1024 * 1024;

const unpacked = async (...entries: TarEntry[]) => unpackArchive(gzipSync(await tarOf(entries), { level: 1 }));

describe("an archive that anybody makes", () => {
  test("is taken with a root directory, ./ before the names, directories of their own and long names", async () => {
    const long = `modules/${"a-long-name-".repeat(15)}/main.tf`;
    const files = await unpacked(
      { name: "./", type: "directory" },
      { name: "./program.yaml", content: "engine: terraform\ndescription: x\n" },
      { name: "./modules/", type: "directory" },
      { name: `./${long}`, content: "# ä" },
      { name: "././empty.tf" },
    );
    expect(files.map(({ path }) => path)).toEqual(["empty.tf", long, "program.yaml"]);
    expect(files[1]?.content.toString()).toBe("# ä");
  });

  test("is taken with the header that `git archive` puts in front", async () => {
    const tar = await tarOf([{ name: "pax_global_header", content: "13 comment=x\n" }, DECLARATION]);
    const files = await unpackArchive(gzipSync(withTypeFlag(tar, "g")));
    expect(files.map(({ path }) => path)).toEqual(["program.yaml"]);
  });

  test("comes back with the same digest from the archive that is kept, byte for byte the same each time", async () => {
    const files = await unpacked(
      DECLARATION,
      { name: "main.tf", content: Buffer.from([0, 255, 10]) },
      { name: "a/b/c.tf" },
    );
    const kept = await packArchive(files);
    const again = await unpackArchive(kept);
    expect(programDigest(again)).toBe(programDigest(files));
    expect((await packArchive(again)).equals(kept)).toBe(true);
  });
});

describe("an archive is refused that", () => {
  test.each<[string, TarEntry, RegExp]>([
    [
      "holds a symbolic link",
      { name: "a", type: "symlink", linkname: "/etc/passwd" },
      /"a": is symlink; only plain files/,
    ],
    ["holds a hard link", { name: "a", type: "link", linkname: "program.yaml" }, /"a": is link; only plain files/],
    [
      "holds a character device",
      { name: "a", type: "character-device", devmajor: 1, devminor: 3 },
      /is character-device/,
    ],
    ["holds a block device", { name: "a", type: "block-device", devmajor: 8, devminor: 0 }, /is block-device/],
    ["holds a fifo", { name: "a", type: "fifo" }, /"a": is fifo; only plain files/],
    ["leads out of the program", { name: "../a", content: "x" }, /"\.\.\/a": \.\. is not allowed: it leads out/],
    ["leads out of the program later", { name: "a/../../b", content: "x" }, /\.\. is not allowed/],
    ["leads out by a directory", { name: "a/..", type: "directory" }, /\.\. is not allowed/],
    ["leads out by an extended header", { name: "a", pax: { path: "../a" } }, /\.\. is not allowed/],
    ["names an absolute path", { name: "/etc/cron.d/a", content: "x" }, /an absolute path is not allowed/],
    [
      "names an absolute path behind ./",
      { name: ".//etc/a", pax: { path: "/etc/a" } },
      /an absolute path is not allowed/,
    ],
    ["holds a NUL in a name", { name: "a", pax: { path: "a\0.tf" } }, /"a\\u0000\.tf": a name must not hold NUL/],
    ["holds a line break in a name", { name: "a\nb.tf" }, /must not hold NUL or other control characters/],
    ["holds a backslash in a name", { name: "..\\a.tf" }, /must not hold a backslash/],
    ["holds a name that is not UTF-8", { name: "a\uFFFD.tf" }, /a name must be UTF-8/],
    ["holds an empty step", { name: "a//b.tf" }, /empty steps and \. are not allowed/],
    ["holds a step that stays", { name: "a/./b.tf" }, /empty steps and \. are not allowed/],
    ["calls a file as the root", { name: "./", type: "file", pax: { path: "." } }, /is no name of a file/],
    ["holds too long a name", { name: `${"a".repeat(256)}.tf` }, /a name is longer than 255 bytes/],
    ["holds too long a path", { name: `${`${"a".repeat(100)}/`.repeat(11)}a.tf` }, /a path is longer than 1024 bytes/],
    ["is nested too deep", { name: `${"a/".repeat(16)}a.tf` }, /directories are nested more than 16 deep/],
    ["holds a file twice", DECLARATION, /"program\.yaml": is in the archive twice/],
    ["holds a file within a file", { name: "program.yaml/a.tf" }, /"program\.yaml": is a file and a directory at once/],
  ])("%s", async (_, hostile, message) => {
    await expect(unpacked(DECLARATION, hostile)).rejects.toThrow(message);
  });

  test("holds an entry of a type that is not known", async () => {
    const sparse = withTypeFlag(await tarOf([DECLARATION]), "S");
    await expect(unpackArchive(gzipSync(sparse))).rejects.toThrow(/is of an unknown type; only plain files/);
  });

  test("holds too many files", async () => {
    const many = Array.from({ length: 2001 }, (_, index) => ({ name: `f${index}.tf` }));
    await expect(unpacked(...many)).rejects.toThrow("holds more than 2000 files");
  });

  test("holds too much", async () => {
    const large = Array.from({ length: 17 }, (_, index) => ({ name: `f${index}`, content: Buffer.alloc(MIB) }));
    await expect(unpacked(...large)).rejects.toThrow(`its files are larger than ${16 * MIB} bytes in all`);
  });

  test("unpacks to far more than it is, and is not unpacked to its end", async () => {
    const bomb = gzipSync(Buffer.alloc(96 * MIB), { level: 1 });
    expect(bomb.length).toBeLessThan(MIB);
    const before = process.memoryUsage().arrayBuffers;
    await expect(unpackArchive(bomb)).rejects.toThrow(/unpacks to more than \d+ bytes/);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(48 * MIB);
  });

  test("claims a file of terabytes", async () => {
    const tar = await tarOf([DECLARATION]);
    const forged = withTypeFlag(Buffer.from(tar).fill("77777777777", 124, 135, "latin1"), "0");
    await expect(unpackArchive(gzipSync(forged))).rejects.toThrow(/is no whole tar/);
  });

  test("is not compressed by gzip", async () => {
    await expect(unpackArchive(await tarOf([DECLARATION]))).rejects.toThrow("is not compressed by gzip");
    await expect(unpackArchive(Buffer.from("PK\x03\x04"))).rejects.toThrow("is not compressed by gzip");
    await expect(unpackArchive(Buffer.of(0x1f))).rejects.toThrow("is not compressed by gzip");
  });

  test("is cut off, in its gzip or in its tar", async () => {
    const whole = await archiveOf({
      "program.yaml": "engine: terraform\ndescription: x\n",
      "main.tf": "x".repeat(2000),
    });
    await expect(unpackArchive(whole.subarray(0, whole.length - 12))).rejects.toThrow("is cut off");
    const tar = await tarOf([DECLARATION, { name: "main.tf", content: "x".repeat(2000) }]);
    await expect(unpackArchive(gzipSync(tar.subarray(0, 2048)))).rejects.toThrow(/is no whole tar/);
    await expect(unpackArchive(gzipSync(tar.subarray(0, 1300)))).rejects.toThrow(/is no whole tar/);
  });

  test("is damaged", async () => {
    const whole = await archiveOf({ "program.yaml": "x".repeat(500) });
    whole.writeUInt32LE(0, whole.length - 8);
    await expect(unpackArchive(whole)).rejects.toThrow("is damaged: it doesn't decompress");
    await expect(unpackArchive(gzipSync("no tar at all ".repeat(100)))).rejects.toThrow(/is no whole tar/);
  });
});

describe("a program's content", () => {
  test("is refused without a declaration, and says where one lies deeper", async () => {
    const empty = await unpacked({ name: "main.tf" });
    expect(() => readProgramContent(empty)).toThrow("has no program.yaml at its root");
    const wrapped = await unpacked({ ...DECLARATION, name: "web-1.0.0/program.yaml" });
    expect(() => readProgramContent(wrapped)).toThrow(
      "has no program.yaml at its root, only web-1.0.0/program.yaml: the root must be the directory that holds it",
    );
    expect(() => readProgramContent([])).toThrow("has no program.yaml at its root");
  });
});
