import { spawn, type ChildProcessByStdio } from "node:child_process";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { processIdentity } from "./process-identity.ts";

/** The variable by which every process that an engine starts is known, whatever group or session it moves to. */
export const ENGINE_MARK = "RUNTIME_CLOUD_ENGINE";
/**
 * What an engine whose service was killed has to end by itself. The CLI tries three times to send its state to a backend
 * that is gone before it writes the state into its work directory: some 4 s after the interrupt, and 12 s on a machine
 * that is very busy.
 */
export const GUARDIAN_GRACE_SECONDS = 15;

const SCRIPT = fileURLToPath(new URL("guardian.sh", import.meta.url));
const SHELL = "/bin/sh";
const TOOL_PATH = "/usr/bin:/bin";
/** A process without engines needs no guardian; a busy one keeps its own. */
const IDLE_MS = 30_000;

/** The leaders of the groups that run. */
const leaders = new Set<number>();
let guardian: GuardianProcess | undefined;
let idle: NodeJS.Timeout | undefined;

/** The value of ENGINE_MARK for a piece of work of this process. */
export function engineMark(work: string): string {
  return `${processIdentity()}/${work}`;
}

/** The same as it stands in a process's environment. */
export function workVariable(work: string): string {
  return `${ENGINE_MARK}=${engineMark(work)}`;
}

/**
 * Has the guardian end a process group if this process goes away first, be it by SIGKILL. The guardian is one small
 * shell per process, in a session of its own; it starts with the first engine and ends with this process, or when there
 * are no engines for a while. Returns what to call when the group has ended.
 */
export function guard(leader: number): () => void {
  clearTimeout(idle);
  leaders.add(leader);
  if (guardian) tell(guardian, "watch", leader);
  else {
    guardian = startGuardian();
    for (const each of leaders) tell(guardian, "watch", each);
  }
  return () => {
    leaders.delete(leader);
    if (guardian) tell(guardian, "release", leader);
    if (leaders.size === 0) idle = setTimeout(dismiss, IDLE_MS).unref();
  };
}

function startGuardian(): GuardianProcess {
  const mark = `${ENGINE_MARK}=${processIdentity()}`;
  const child = spawn(SHELL, [SCRIPT, mark, String(GUARDIAN_GRACE_SECONDS)], {
    cwd: "/",
    detached: true,
    env: { PATH: TOOL_PATH },
    stdio: ["pipe", "ignore", "ignore"],
  });
  // One that can't start or was killed is replaced at the next engine, and its successor is told of all that run.
  const forget = () => {
    if (guardian === child) guardian = undefined;
  };
  child.once("error", forget).once("exit", forget);
  child.stdin.on("error", forget);
  child.unref();
  if (child.stdin instanceof Socket) child.stdin.unref();
  return child;
}

function tell({ stdin }: GuardianProcess, verb: "watch" | "release", leader: number): void {
  stdin.write(`${verb} ${leader}\n`);
}

/** Told to go, it ends nobody: another engine may have started just now, with the same mark. */
function dismiss(): void {
  guardian?.stdin.end("leave\n");
  guardian = undefined;
}

type GuardianProcess = ChildProcessByStdio<Writable, null, null>;
