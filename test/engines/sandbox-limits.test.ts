import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { approved, planned, play, type EngineBench } from "./engine-bench.ts";
import { engineIn, limited, NOBODY, openSandboxBench, type SandboxBench } from "./sandbox-bench.ts";

let sandbox: SandboxBench;
let bench: EngineBench;
beforeAll(async () => {
  sandbox = await openSandboxBench();
  bench = sandbox.bench;
});
afterAll(() => sandbox.close());

describe("limits", () => {
  test("an engine that needs more memory than it may have is OOM_KILLED, and the setting is named", async () => {
    const { outcome } = await sandbox.plan(
      await hungryProgram(),
      engineIn({ limits: await limited({ memoryMb: 160 }) }),
    );
    expect(outcome).toMatchObject({ result: "failed", failure: { code: "OOM_KILLED" } });
    expect(JSON.stringify(outcome)).toContain("more than its 160 MB of memory: raise ENGINE_MEMORY_MB");
  });

  test("an engine that needs more processor time is LIMIT_EXCEEDED, and the setting is named", async () => {
    const { outcome } = await sandbox.plan(
      await hungryProgram(),
      engineIn({ limits: await limited({ cpuSeconds: 1 }) }),
    );
    expect(outcome).toMatchObject({ result: "failed", failure: { code: "LIMIT_EXCEEDED" } });
    expect(JSON.stringify(outcome)).toContain("1 s of processor time: raise ENGINE_CPU_SECONDS");
  });

  test("a resource that writes too large a file fails by its address, and the setting is named", async () => {
    const program = await sandbox.shellProgram("large-file", "dd if=/dev/zero of=large bs=1M count=3");
    const { outcome } = await sandbox.apply(program, engineIn({ limits: await limited({ fileMb: 1 }) }));
    expect(outcome.failure).toMatchObject({
      code: "LIMIT_EXCEEDED",
      address: "terraform_data.shell",
      message: expect.stringContaining("raise ENGINE_FILE_MB"),
    });
  });

  test("an ordinary program runs under the defaults", async () => {
    const job = await (await bench.environment()).job("environment-baseline@1.0.0", { environment: "staging" });
    const engine = engineIn({ user: NOBODY, limits: await limited() });
    const { outcome } = await play(engine.plan({ ...job, mode: "APPLY" }));
    const applied = await play(engine.apply({ ...job, ...approved(planned(outcome)) }));
    expect(applied.outcome.result).toBe("applied");
  });
});

describe("a full disk", () => {
  test("a program that finds no room fails with WORK_DIRECTORY_FULL before its engine starts", async () => {
    await onSmallDisk("64k", async (disk) => {
      const { outcome } = await sandbox.plan(await bulkyProgram(), engineIn({}), disk);
      expect(outcome).toMatchObject({ result: "failed", failure: { code: "WORK_DIRECTORY_FULL" } });
      expect(JSON.stringify(outcome)).toContain(
        `no space left in the work directory: ${disk}: free space or set WORK_DIR`,
      );
      expect(await readdir(disk)).toEqual([]);
    });
  });

  test("an engine that runs out of room fails with WORK_DIRECTORY_FULL", async () => {
    await onSmallDisk("320k", async (disk) => {
      const { outcome } = await sandbox.plan(await bulkyProgram(), engineIn({}), disk);
      expect(outcome).toMatchObject({ result: "failed", failure: { code: "WORK_DIRECTORY_FULL" } });
      expect(await readdir(disk)).toEqual([]);
    });
  });

  /** Mounts a file system of its own; only root can. */
  async function onSmallDisk(size: string, work: (disk: string) => Promise<void>): Promise<void> {
    const disk = await mkdtemp(path.join(bench.directory, "disk-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", disk]);
    try {
      await work(disk);
    } finally {
      execFileSync("umount", ["--lazy", disk]);
    }
  }
});

/** A program that needs a long time and much memory to be planned. */
async function hungryProgram(): Promise<string> {
  return bench.writeProgram("hungry", {
    "program.yaml": "engine: terraform\ndescription: Counts to sixteen million.\n",
    "main.tf": 'output "much" { value = length(setproduct(range(256), range(256), range(256))) }\n',
  });
}

/** A program of some hundred kilobytes that don't compress, so that its plan is as large. */
async function bulkyProgram(): Promise<string> {
  return bench.writeProgram("bulky", {
    "program.yaml": "engine: terraform\ndescription: Is large.\n",
    "main.tf": `locals { bulk = "${randomBytes(150_000).toString("base64")}" }\noutput "size" { value = length(local.bulk) }\n`,
  });
}
