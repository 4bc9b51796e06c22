import { spawn, type ChildProcess } from "node:child_process";
import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import type { EngineSignals } from "./engine.ts";
import { lineSplitter, type OutputLine } from "./line-splitter.ts";

/** An engine's JSON messages are far shorter. */
const MAX_READ_LINE_LENGTH = 1024 * 1024;

export interface Command {
  /** Absolute path of the binary; no shell is involved. */
  readonly binary: string;
  readonly args: readonly string[];
  readonly directory: string;
  /** The child's whole environment. */
  readonly environment: Readonly<Record<string, string>>;
  readonly signals: EngineSignals;
  /** The longest line that is read whole; what is beyond is dropped. */
  readonly maxLineLength?: number;
}

export interface Exit {
  readonly code: number | null;
  /** The signal that ended it, such as SIGKILL. */
  readonly signal: string | null;
}

/**
 * Runs a command in a process group of its own and streams what `read` makes of its output, line by line, from both
 * streams.
 *
 * `signals.interrupt` sends SIGINT to the command only: it stops its own children in its own order. `signals.kill`
 * kills the whole group. When the command has ended, whatever it left running in the group is killed too. Leaving the
 * generator early interrupts the command and waits for it.
 */
export async function* run<T>(command: Command, read: (output: OutputLine) => readonly T[]): AsyncGenerator<T, Exit> {
  const { signals } = command;
  const child = spawn(command.binary, command.args, {
    cwd: command.directory,
    env: command.environment,
    detached: true,
    shell: false,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const interrupt = () => child.kill("SIGINT");
  const kill = () => killGroup(child);
  const exited = exitOf(child);
  const lines = mergedLines(child, command.maxLineLength);
  signals.interrupt.addEventListener("abort", interrupt);
  signals.kill.addEventListener("abort", kill);
  if (signals.interrupt.aborted) interrupt();
  if (signals.kill.aborted) kill();
  let ended = false;
  try {
    const outputs: AsyncIterable<OutputLine> = lines.iterator({ destroyOnReturn: false });
    for await (const output of outputs) yield* read(output);
    ended = true;
    return await exited;
  } finally {
    if (!ended) {
      interrupt();
      lines.resume();
    }
    await exited.catch(() => undefined);
    signals.interrupt.removeEventListener("abort", interrupt);
    signals.kill.removeEventListener("abort", kill);
  }
}

/** Rejects when the binary cannot be started. Children that outlive the command are killed, so its pipes close. */
function exitOf(child: ChildProcess): Promise<Exit> {
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      killGroup(child);
      resolve({ code, signal });
    });
  });
  exited.catch(() => undefined);
  return exited;
}

function mergedLines(child: ChildProcess, maxLineLength: number = MAX_READ_LINE_LENGTH): PassThrough {
  const merged = new PassThrough({ objectMode: true });
  const sources = [
    { stream: child.stdout, name: "stdout" as const },
    { stream: child.stderr, name: "stderr" as const },
  ].map(({ stream, name }) => {
    const splitter = lineSplitter(name, maxLineLength);
    stream?.pipe(splitter).pipe(merged, { end: false });
    return finished(splitter);
  });
  void Promise.allSettled(sources).then(() => merged.end());
  child.once("error", () => merged.end());
  return merged;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // No process of the group is left.
  }
}
