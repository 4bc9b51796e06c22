import { spawn } from "node:child_process";
import { once } from "node:events";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { checkInstallation } from "@runtime-cloud/iac-provisioning/check-installation";
import { settings } from "@runtime-cloud/iac-provisioning/settings";
import { ConfigError, readConfig } from "@runtime-cloud/service-kit/config";
import { testRedis } from "../../_support/redis.ts";

const PROCESS_TIMEOUT_MS = 60_000;
const main = fileURLToPath(new URL("../../../services/iac-provisioning/src/main.ts", import.meta.url));

let folder: string;
let environment: Record<string, string>;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "iac-settings-"));
  const redis = testRedis();
  environment = {
    DATABASE_URL: "postgres://localhost:1/nowhere",
    REDIS_URL: redis.url,
    QUEUE_PREFIX: redis.prefix,
    SUBSCRIBERS: "IaCProvisioningService",
    STATE_ENCRYPTION_KEYS: `test:${randomBytes(32).toString("base64")}`,
    TARGETS_DIR: path.join(folder, "targets"),
    WORK_DIR: path.join(folder, "work"),
  };
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** What is wrong with the environment, changed, on this machine. */
async function problemsWith(changes: Record<string, string>): Promise<readonly string[]> {
  try {
    await checkInstallation(readConfig(settings, { ...environment, ...changes }));
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

test("every setting of the wrong form is named at once, and no key is repeated", () => {
  const wrong = { ...environment, BASELINE_PROGRAM: "x", STATE_ENCRYPTION_KEYS: "one", EXECUTOR_CONCURRENCY: "0" };
  expect(() => readConfig(settings, wrong)).toThrow(
    expect.objectContaining({
      problems: expect.arrayContaining([
        expect.stringMatching(
          /^BASELINE_PROGRAM="x" is not name@version, like environment-baseline@1\.0\.0; it wants: the program/,
        ),
        expect.stringMatching(
          /^STATE_ENCRYPTION_KEYS \(value hidden\) key one must be 32 bytes in base64.*; it wants: /,
        ),
        expect.stringMatching(/^EXECUTOR_CONCURRENCY="0" is not a whole number/),
      ]),
    }),
  );
});

test("everything that this machine hasn't is named at once", async () => {
  const file = path.join(folder, "file");
  await writeFile(file, "");
  const problems = await problemsWith({
    TARGETS_DIR: file,
    WORK_DIR: path.join(file, "work"),
    IAC_ENGINE_BIN: file,
    BASELINE_PROGRAM: "nothing@1.0.0",
  });
  expect(problems).toEqual([
    expect.stringMatching(/^TARGETS_DIR="\S+\/file" is not a directory that can be made and written \(EEXIST.*wants: /),
    expect.stringMatching(/^WORK_DIR="\S+\/file\/work" is not a directory that can be made and written \(ENOTDIR/),
    expect.stringMatching(/^IAC_ENGINE_BIN="\S+\/file" is not an executable file; it wants: the OpenTofu or Terraform/),
    expect.stringMatching(
      /^BASELINE_PROGRAM="nothing@1\.0\.0" is not in PROGRAMS_DIR \S+, which holds .*environment-b/,
    ),
  ]);
});

test("a missing directory of programs is said once, not of the program in it too", async () => {
  expect(await problemsWith({ PROGRAMS_DIR: path.join(folder, "nope") })).toEqual([
    expect.stringMatching(
      /^PROGRAMS_DIR="\S+\/nope" is not a directory that can be read \(ENOENT.*; it wants: the dir/,
    ),
  ]);
});

test("a baseline program that makes no sense is said with its field", async () => {
  const version = path.join(folder, "programs", "odd", "1.0.0");
  await mkdir(version, { recursive: true });
  await writeFile(path.join(version, "program.yaml"), "engine: magic\ndescription: Odd.\n");
  const problems = await problemsWith({ PROGRAMS_DIR: path.join(folder, "programs"), BASELINE_PROGRAM: "odd@1.0.0" });
  expect(problems).toEqual([
    expect.stringMatching(
      /^BASELINE_PROGRAM="odd@1\.0\.0" can't be used: program odd@1\.0\.0: program\.yaml: engine: /,
    ),
  ]);
});

test("a binary may be missing from the PATH unless it is asked for by name", async () => {
  expect(await problemsWith({ PATH: folder })).toEqual([]);
  expect(await problemsWith({ PATH: folder, IAC_ENGINE_BIN: "tofu" })).toEqual([
    expect.stringMatching(/^IAC_ENGINE_BIN="tofu" is not an executable file on the PATH; it wants: /),
  ]);
  expect(await problemsWith({ IAC_ENGINE_BIN: folder })).toEqual([
    expect.stringMatching(/^IAC_ENGINE_BIN="\S+" is not an executable file; /),
  ]);
  await writeFile(path.join(folder, "tofu"), "#!/bin/sh\n");
  await chmod(path.join(folder, "tofu"), 0o755);
  expect(await problemsWith({ PATH: folder, IAC_ENGINE_BIN: "tofu" })).toEqual([]);
});

test("the directories to write to are made, the engines' for this user alone", async () => {
  expect(await problemsWith({})).toEqual([]);
  expect((await stat(path.join(folder, "targets"))).isDirectory()).toBe(true);
  expect((await stat(path.join(folder, "work"))).mode & 0o777).toBe(0o700);
});

test(
  "the process ends with 78 and says what is wrong, without a stack",
  async () => {
    const env = {
      ...environment,
      PATH: process.env["PATH"],
      LOCAL_ISSUER_FILE: path.join(folder, "issuer.json"),
      LOG_LEVEL: "silent",
      PROGRAMS_DIR: "/nope",
      IAC_ENGINE_BIN: "/nope",
    };
    const child = spawn(process.execPath, ["--import", "tsx", main], { env, stdio: ["ignore", "ignore", "pipe"] });
    const [ended, said] = await Promise.all([once(child, "exit"), text(child.stderr)]);
    expect(ended).toEqual([78, null]);
    expect(said).toMatch(
      /^The configuration can't be used:\n {2}PROGRAMS_DIR="\/nope" .*\n {2}IAC_ENGINE_BIN="\/nope" /,
    );
    expect(said).not.toContain("    at ");
  },
  PROCESS_TIMEOUT_MS,
);
