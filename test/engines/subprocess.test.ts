import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { resourceLimits, type LimitSettings } from "@runtime-cloud/iac-provisioning/engines/sandbox/sandbox-limits";
import { run, type Command, type Exit } from "@runtime-cloud/iac-provisioning/engines/sandbox/subprocess";
import { until } from "@runtime-cloud/local-servers/until";
import { ENGINE_MARK } from "@runtime-cloud/iac-provisioning/engines/sandbox/guardian";
import { expectDead, guardianOf, isAlive } from "./process-watch.ts";

const EXECUTOR = fileURLToPath(new URL("guarded-executor.ts", import.meta.url));
const GUARDIAN = fileURLToPath(
  import.meta.resolve("@runtime-cloud/iac-provisioning/engines/sandbox/guardian").replace(/\.ts$/, ".sh"),
);
const STARTS_WITHIN_MS = 20_000;
const PATH = "/usr/bin:/bin";
const GENEROUS: LimitSettings = { cpuSeconds: 600, memoryMb: 4_096, fileMb: 1_024, maxProcesses: 4_096 };
const NOBODY = { uid: 65_534, gid: 65_534 };

let directory: string;
beforeEach(async () => {
  directory = await realpath(await mkdtemp(path.join(tmpdir(), "subprocess-")));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe("what a command leaves behind", () => {
  test("a child that ignores the interrupt doesn't outlive its command", async () => {
    const interrupt = new AbortController();
    const { lines, exit } = await shell(
      `sh -c 'trap "" INT; echo $$; sleep 300' & trap 'exit 1' INT; echo ready; wait`,
      { interrupt: interrupt.signal },
      (line, seen) => {
        if (seen.includes("ready") && seen.length === 2) interrupt.abort();
      },
    );
    expect(exit.code).toBe(1);
    await expectDead(...numbersIn(lines));
  });

  test("a child that left the group with the output in hand is killed, and the run ends", async () => {
    const { lines, exit } = await shell(`env -i setsid sh -c 'echo $$; exec sleep 300' & sleep 0.2; echo done`);
    expect(exit.code).toBe(0);
    expect(numbersIn(lines)).toHaveLength(1);
    await expectDead(...numbersIn(lines));
  });

  test("whatever it says last is read, however slow the reader is", async () => {
    const { lines } = await shell("seq 20000; echo last", {}, async (line) => {
      if (line === "1") await new Promise((resolve) => setTimeout(resolve, 400));
    });
    expect(lines).toHaveLength(20_001);
    expect(lines.at(-1)).toBe("last");
  });
});

describe("when the process that runs it is killed with -9", () => {
  test("the command is interrupted, has time to end in its own way, and then no guardian lives", async () => {
    const executor = await startExecutor(`trap 'echo told > told; exit 0' INT; echo $$; while :; do sleep 0.05; done`);
    const guardian = await until("a guardian", STARTS_WITHIN_MS, () => guardianOf(executor.pid));
    executor.process.kill("SIGKILL");
    await expectDead(executor.pid, ...executor.pids, guardian);
    expect(await readFile(path.join(directory, "told"), "utf8")).toBe("told\n");
  });

  test("what ignores interrupts and what left the group die too", async () => {
    const script = `trap "" INT; setsid sh -c 'echo $$; exec >/dev/null 2>&1; sleep 300' & echo $$; sleep 300`;
    const executor = await startExecutor(script, 2);
    const guardian = await until("a guardian", STARTS_WITHIN_MS, () => guardianOf(executor.pid));
    expect(await Promise.all(executor.pids.map(isAlive))).toEqual([true, true]);
    executor.process.kill("SIGKILL");
    await expectDead(...executor.pids, guardian);
  }, 80_000);

  test("a guardian that was killed is replaced, and its successor knows of all that run", async () => {
    const first = shell("echo $$; exec sleep 300", { kill: AbortSignal.timeout(STARTS_WITHIN_MS) }, undefined, "first");
    const guardian = await until("a guardian", STARTS_WITHIN_MS, () => guardianOf(process.pid));
    process.kill(guardian, "SIGKILL");
    await expectDead(guardian);
    const kill = new AbortController();
    const second = shell("echo $$; exec sleep 300", { kill: kill.signal }, async () => {
      const successor = await until("its successor", STARTS_WITHIN_MS, () => guardianOf(process.pid));
      expect(successor).not.toBe(guardian);
      kill.abort();
    });
    expect((await second).exit.signal).toBe("SIGKILL");
    first.stop();
    expect((await first).exit.signal).toBe("SIGKILL");
  });
});

test.each([
  ["told to leave ends no engine of its service, which may have started just now", "leave\n", "SIGTERM"],
  ["whose service is gone ends its engines", "", "SIGKILL"],
])("a guardian %s", async (_, lastWord, endedBy) => {
  const mark = `${randomUUID()}-1`;
  const engine = spawn("sleep", ["300"], { env: { PATH, [ENGINE_MARK]: `${mark}/work` } });
  const ended = once(engine, "exit");
  await once(engine, "spawn");
  const guardian = spawn("/bin/sh", [GUARDIAN, `${ENGINE_MARK}=${mark}`, "1"], { stdio: ["pipe", "ignore", "ignore"] });
  guardian.stdin.end(lastWord);
  await once(guardian, "exit");
  engine.kill("SIGTERM");
  expect(await ended).toEqual([null, endedBy]);
});

test("the guardian ends with its process", async () => {
  const executor = await startExecutor("echo $$; read line < pipe || sleep 1");
  const guardian = await until("a guardian", STARTS_WITHIN_MS, () => guardianOf(executor.pid));
  await once(executor.process, "exit");
  await expectDead(guardian, ...executor.pids);
});

describe("limits", () => {
  test("processor time: the failure names the setting", async () => {
    const { exit } = await confined("while :; do :; done", { cpuSeconds: 1 });
    expect(exit).toMatchObject({ signal: "SIGXCPU", reached: { code: "LIMIT_EXCEEDED" } });
    expect(exit.reached?.message).toContain("1 s of processor time: raise ENGINE_CPU_SECONDS");
  });

  test("file size: the failure names the setting", async () => {
    const { exit } = await confined("exec dd if=/dev/zero of=large bs=1M count=3", { fileMb: 1 });
    expect(exit.reached).toMatchObject({ code: "LIMIT_EXCEEDED", message: expect.stringContaining("ENGINE_FILE_MB") });
  });

  test("processes: the failure names the setting", async () => {
    const { exit } = await confined(
      "for i in $(seq 100); do sleep 300 & done; wait",
      { maxProcesses: 40 },
      { user: NOBODY },
    );
    expect(exit.reached).toMatchObject({
      code: "LIMIT_EXCEEDED",
      message: expect.stringContaining("ENGINE_MAX_PROCESSES"),
    });
  });

  test("none is raised above this process's own, and no core is written", async () => {
    const limits = await resourceLimits(
      { ...GENEROUS, cpuSeconds: 1_000_000_000 },
      { searchPath: PATH, ownUser: false },
    );
    expect(limits?.flags).toContain("--core=0");
    const { lines } = await confined("ulimit -c; ulimit -n", {});
    expect(lines[0]).toBe("0");
    expect(Number(lines[1])).toBeLessThanOrEqual(8_192);
  });

  test("memory that this machine lacks is told from a kill by hand, which is no limit", async () => {
    const { exit } = await confined("kill -9 $$", {});
    expect(exit).toMatchObject({ signal: "SIGKILL", code: null });
    expect(exit.reached).toBeUndefined();
  });
});

test("with a user of its own, a command has no rights of the service's and sees no group of it", async () => {
  const { lines } = await confined("id -u; id -g; id -G; cat /etc/shadow", {}, { user: NOBODY, directory: "/" });
  expect(lines.slice(0, 3)).toEqual(["65534", "65534", "65534"]);
  expect(lines[3]).toMatch(/Permission denied/);
});

interface Ran {
  readonly lines: string[];
  readonly exit: Exit;
}

type OnLine = (line: string, seen: readonly string[]) => void | Promise<void>;
type Signals = Partial<Command["signals"]>;

/** Runs a shell script as an engine is run; `stop` kills it. */
function shell(
  script: string,
  signals: Signals = {},
  onLine?: OnLine,
  work = "test",
): Promise<Ran> & { stop: () => void } {
  const stopped = new AbortController();
  const kill = AbortSignal.any([stopped.signal, ...(signals.kill ? [signals.kill] : [])]);
  const interrupt = signals.interrupt ?? new AbortController().signal;
  const ran = play({ ...shellCommand(script), signals: { interrupt, kill }, work }, onLine);
  return Object.assign(ran, { stop: () => stopped.abort() });
}

async function confined(
  script: string,
  limits: Partial<LimitSettings>,
  { user, directory: where }: { user?: typeof NOBODY; directory?: string } = {},
): Promise<Ran> {
  const set = await resourceLimits({ ...GENEROUS, ...limits }, { searchPath: PATH, ownUser: user !== undefined });
  if (!set) throw new Error("there is no prlimit here: install util-linux");
  const sandbox = { limits: set, searchPath: PATH, ...(user && { user }) };
  return play({ ...shellCommand(script), sandbox, ...(where !== undefined && { directory: where }) });
}

function shellCommand(script: string): Command {
  const never = new AbortController().signal;
  const signals = { interrupt: never, kill: never };
  return { binary: "/bin/sh", args: ["-c", script], directory, environment: { PATH }, signals };
}

async function play(command: Command, onLine: OnLine = () => undefined): Promise<Ran> {
  const lines: string[] = [];
  const running = run(command, ({ line }) => [line]);
  for (;;) {
    const step = await running.next();
    if (step.done === true) return { lines, exit: step.value };
    lines.push(step.value);
    await onLine(step.value, lines);
  }
}

function numbersIn(lines: readonly string[]): number[] {
  return lines.filter((line) => /^\d+$/.test(line)).map(Number);
}

/** A process of its own that runs a script; ready when the script has printed `count` pids. */
async function startExecutor(
  script: string,
  count = 1,
): Promise<{ process: ChildProcess; pid: number; pids: number[] }> {
  const started = spawn(process.execPath, ["--import", "tsx", EXECUTOR, script, directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const pids: number[] = [];
  for await (const line of createInterface(started.stdout)) {
    pids.push(Number(line));
    if (pids.length === count) break;
  }
  started.stdout.resume();
  if (started.pid === undefined) throw new Error("the executor has no pid");
  return { process: started, pid: started.pid, pids };
}
