import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { messageOf } from "../../system-error.ts";
import { EngineStopped } from "../engine-stopped.ts";
import { GUARDIAN_GRACE_SECONDS } from "./guardian.ts";
import { Launch, type Launched } from "./launch.ts";

/** Starting it takes a moment, and it holds some memory. */
const IDLE_MS = 60_000;
/** It ends engines of a service that is gone only where their guardian, which gives them less, is gone too. */
const GRACE_SECONDS = 2 * GUARDIAN_GRACE_SECONDS;
const MAX_COMPLAINT_LENGTH = 300;
const SCRIPT = fileURLToPath(new URL("launcher-process.mjs", import.meta.url));
const TOOL_PATH = "/usr/bin:/bin";
/** Whatever it holds makes each start slower. */
const SMALL_HEAP = ["--max-old-space-size=64", "--max-semi-space-size=1"];

export interface LaunchRequest {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
  /** Whether its output stays open, and is read by somebody, when this process is killed. */
  readonly holds: boolean;
}

const news = z.union([
  /** It is ready, and keeps its socket there. */
  z.object({ directory: z.string() }),
  z.object({ id: z.int(), pid: z.int(), files: z.array(z.string()), output: z.enum(["stdout", "stderr"]) }),
  z.object({ id: z.int(), code: z.int().nullable(), signal: z.string().nullable() }),
  z.object({ id: z.int(), problem: z.string(), errorCode: z.string().optional() }),
]);

let current: Launcher | undefined;
let idle: NodeJS.Timeout | undefined;

/**
 * Starts a command by way of a small process: a fork copies the page tables of whatever the forking process holds, and a
 * service holds much. The output comes from the command itself, so neither speed nor backpressure is the launcher's. The
 * launcher starts with the first command, and ends with this process, or when there are no commands for a while.
 *
 * Rejects when the command can't be started, with EngineStopped where that is the launcher's fault. A launcher that is
 * killed leaves what it started running, but how that ends is UNSEEN, and so may be whether the last one was started:
 * then it is undefined. The next command gets another launcher.
 */
export async function launch(request: LaunchRequest): Promise<Launched | undefined> {
  clearTimeout(idle);
  current ??= openLauncher();
  return current.launch(request);
}

function openLauncher(): Launcher {
  const child = spawn(process.execPath, [...SMALL_HEAP, SCRIPT, tmpdir(), String(GRACE_SECONDS)], {
    cwd: "/",
    detached: true,
    env: { PATH: TOOL_PATH },
    stdio: ["pipe", "ignore", "pipe", "ipc"],
  });
  const launches = new Map<number, Launch>();
  const complaint = complaintOf(child);
  let lastId = 0;
  let directory: string | undefined;

  child.on("message", (message, handle) => {
    const told = news.parse(message);
    if ("directory" in told) directory = told.directory;
    else if ("output" in told && handle instanceof Socket) launches.get(told.id)?.take(told, handle);
    else if ("problem" in told) finish(told.id)?.refuse(systemError(told.problem, told.errorCode));
    else if ("signal" in told) finish(told.id)?.end({ code: told.code, signal: told.signal });
  });
  // What it said before it ended comes before `disconnect`, and what it complained of before `close`.
  Promise.all([once(child, "disconnect"), once(child, "close")]).then(
    () => lose(complaint() || "it ended without a word"),
    (error: unknown) => lose(messageOf(error)),
  );
  child.stdin?.on("error", () => undefined);
  for (const stream of [child.stdin, child.stderr]) if (stream instanceof Socket) stream.unref();
  stayFor(child, false);
  const launcher: Launcher = {
    launch(request) {
      const id = (lastId += 1);
      const begun = new Launch();
      launches.set(id, begun);
      stayFor(child, true);
      child.send({ id, ...request }, (error) => {
        // It was killed just now, so this command hasn't been started. One that can't be started is found out by its end.
        if (!error || directory === undefined || !launches.delete(id)) return;
        forget();
        begun.passOn(launch(request));
      });
      return begun.launched;
    },
  };
  return launcher;

  function finish(id: number): Launch | undefined {
    const ended = launches.get(id);
    launches.delete(id);
    if (launches.size > 0) return ended;
    stayFor(child, false);
    if (current === launcher) idle = setTimeout(dismiss, IDLE_MS).unref();
    return ended;
  }

  function lose(reason: string): void {
    forget();
    for (const each of launches.values()) {
      if (directory === undefined) each.refuse(cannotStart(reason));
      each.lose();
    }
    launches.clear();
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  }

  function forget(): void {
    if (current === launcher) current = undefined;
  }

  function dismiss(): void {
    forget();
    child.stdin?.end();
  }
}

/** What it writes to stderr, which it does only when it fails. */
function complaintOf({ stderr }: ChildProcess): () => string {
  let complaint = "";
  stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(0, MAX_COMPLAINT_LENGTH);
  });
  return () => complaint.trim();
}

/** Only a command that runs keeps this process from ending. */
function stayFor(child: ChildProcess, isBusy: boolean): void {
  for (const handle of [child, child.channel]) {
    if (isBusy) handle?.ref();
    else handle?.unref();
  }
}

function systemError(message: string, code: string | undefined): Error {
  return Object.assign(new Error(message), { code });
}

function cannotStart(reason: string): EngineStopped {
  return new EngineStopped({ code: "ENGINE_ERROR", message: `what starts engines can't be started: ${reason}` });
}

interface Launcher {
  launch(request: LaunchRequest): Promise<Launched | undefined>;
}
