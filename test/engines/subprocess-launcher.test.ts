import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { run, type Command, type Exit } from "@runtime-cloud/iac-provisioning/engines/sandbox/subprocess";
import { until } from "@runtime-cloud/local-servers/until";
import { z } from "zod";
import { expectDead, launcherOf } from "./process-watch.ts";

const EXECUTOR = fileURLToPath(new URL("guarded-executor.ts", import.meta.url));
const LAUNCHER = fileURLToPath(
  import.meta.resolve("@runtime-cloud/iac-provisioning/engines/sandbox/launcher").replace(/\.ts$/, "-process.mjs"),
);
const WITHIN_MS = 20_000;
const PATH = "/usr/bin:/bin";
const MEBIBYTE = 1024 * 1024;
/** More than what lies between a command and its reader can take. */
const MORE_THAN_BUFFERS = 20 * MEBIBYTE;
/** So many lines are too. */
const LAST = 50_000;
/** What a launcher says of a command, and its stdout. */
const launched = z.tuple([z.object({ pid: z.int() }), z.instanceof(Socket)]);

let directory: string;
beforeEach(async () => {
  directory = await realpath(await mkdtemp(path.join(tmpdir(), "launcher-")));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe("output", () => {
  test("100 MB of it arrive, byte for byte", async () => {
    let received = 0;
    let isAsSent = true;
    const stdout = sink((bytes) => {
      received += bytes.length;
      isAsSent &&= bytes.equals(Buffer.alloc(bytes.length));
    });
    const { exit } = await shell(`head -c ${100 * MEBIBYTE} /dev/zero`, { stdout });
    expect(exit.code).toBe(0);
    expect({ received, isAsSent }).toEqual({ received: 100 * MEBIBYTE, isAsSent: true });
  });

  test("a command waits for a reader that is slow", async () => {
    const written = path.join(directory, "written");
    let received = 0;
    const stdout = sink(async (bytes) => {
      if (received === 0) {
        await wait(500);
        await expect(access(written)).rejects.toThrow("ENOENT");
      }
      received += bytes.length;
    });
    await shell(`head -c ${MORE_THAN_BUFFERS} /dev/zero; touch ${written}`, { stdout });
    await access(written);
    expect(received).toBe(MORE_THAN_BUFFERS);
  });

  test("a command whose reader fails finds its output closed, and ends", async () => {
    const stdout = sink(() => {
      throw new Error("enough");
    });
    const { exit } = await shell("exec cat /dev/zero", { stdout });
    // What was written and never read makes a write fail, not the signal of one after the end.
    const ends = [
      { code: null, signal: "SIGPIPE" },
      { code: 1, signal: null },
    ];
    expect(ends).toContainEqual({ code: exit.code, signal: exit.signal });
  });

  test("what can't be started is told as the system tells it", async () => {
    await expect(shell("", { binary: path.join(directory, "nothing") })).rejects.toMatchObject({ code: "ENOENT" });
    await expect(shell("", { directory: path.join(directory, "nowhere") })).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("when the launcher is killed with -9", () => {
  test("a command runs on and is heard, how it ended is unseen, and the next gets another launcher", async () => {
    let launcher = NaN;
    const script = `echo launcher=$PPID; while [ ! -e go ]; do sleep 0.05; done; seq ${LAST}; echo last`;
    const { lines, exit } = await shell(script, {}, async (line) => {
      if (!line.startsWith("launcher=")) return;
      launcher = Number(line.slice("launcher=".length));
      process.kill(launcher, "SIGKILL");
      await expectDead(launcher);
      await writeFile(path.join(directory, "go"), "");
    });
    expect(lines).toHaveLength(LAST + 2);
    expect(lines.at(-1)).toBe("last");
    expect(exit).toMatchObject({ code: null, signal: null, reached: { code: "ENGINE_ERROR" } });
    expect(exit.reached?.message).toContain("nobody saw how the engine ended");
    const next = await shell("echo $PPID; exit 7");
    expect(next.exit.code).toBe(7);
    expect(Number(next.lines[0])).not.toBe(launcher);
  });

  test("a command can still be stopped", async () => {
    const kill = new AbortController();
    const { lines, exit } = await shell("echo $PPID $$; exec sleep 300", { kill: kill.signal }, async (line) => {
      const launcher = Number(line.split(" ")[0]);
      process.kill(launcher, "SIGKILL");
      await expectDead(launcher);
      kill.abort();
    });
    expect(exit.code).toBeNull();
    await expectDead(Number(lines[0]?.split(" ")[1]));
  });
});

describe("when the process that runs it is killed with -9", () => {
  test("a command that has to say more than its pipe takes comes to its own end, and then no launcher lives", async () => {
    const last = `head -c ${MORE_THAN_BUFFERS} /dev/zero; echo told > told; exit 0`;
    const executor = spawn(
      process.execPath,
      ["--import", "tsx", EXECUTOR, `trap '${last}' INT; echo $$; while :; do sleep 0.05; done`, directory, "holds"],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const [line] = z.tuple([z.string()]).parse(await once(createInterface(executor.stdout), "line"));
    const launcher = await until("a launcher", WITHIN_MS, () => launcherOf(executor.pid ?? 0));
    executor.kill("SIGKILL");
    await expectDead(Number(line), launcher);
    expect(await readFile(path.join(directory, "told"), "utf8")).toBe("told\n");
  });

  test("where its guardian is gone too, the launcher ends what it started", async () => {
    const launcher = spawn(process.execPath, [LAUNCHER, directory, "1"], {
      stdio: ["pipe", "ignore", "inherit", "ipc"],
    });
    await once(launcher, "message");
    const args = ["-c", "trap '' INT; sleep 300"];
    launcher.send({ id: 1, file: "/bin/sh", args, cwd: directory, env: { PATH }, holds: false });
    const [{ pid }, output] = launched.parse(await once(launcher, "message"));
    const left = once(launcher, "exit");
    // Its second output is on its way, as it may be when a service is killed.
    launcher.stdin?.end();
    launcher.disconnect();
    await expectDead(pid);
    expect(await left).toEqual([0, null]);
    output.destroy();
  });
});

interface Ran {
  readonly lines: string[];
  readonly exit: Exit;
}

type Given = Partial<Pick<Command, "stdout" | "binary" | "directory"> & { kill: AbortSignal }>;

/** Runs a shell script as an engine is run. */
async function shell(
  script: string,
  { kill, ...given }: Given = {},
  onLine: (line: string) => Promise<void> = async () => undefined,
): Promise<Ran> {
  const never = new AbortController().signal;
  const command: Command = {
    binary: "/bin/sh",
    args: ["-c", script],
    directory,
    environment: { PATH },
    signals: { interrupt: never, kill: kill ?? never },
    work: "launched",
    ...given,
  };
  const lines: string[] = [];
  const running = run(command, ({ line }) => [line]);
  for (;;) {
    const step = await running.next();
    if (step.done === true) return { lines, exit: step.value };
    lines.push(step.value);
    await onLine(step.value);
  }
}

function sink(take: (bytes: Buffer) => void | Promise<void>): Writable {
  return new Writable({
    write(bytes: Buffer, _encoding, done) {
      Promise.resolve()
        .then(() => take(bytes))
        .then(() => done(), done);
    },
  });
}
