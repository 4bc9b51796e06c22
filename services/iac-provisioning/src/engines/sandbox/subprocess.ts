import { spawn, type ChildProcess } from "node:child_process";
import { readlinkSync } from "node:fs";
import { PassThrough, type Writable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { setTimeout as wait } from "node:timers/promises";
import type { EngineFailure, EngineSignals } from "../engine.ts";
import { ENGINE_MARK, engineMark, guard, workVariable } from "./guardian.ts";
import { lineSplitter, type OutputLine } from "./line-splitter.ts";
import { holdOutput } from "./output-holder.ts";
import { confine, type CommandSandbox } from "./sandbox.ts";
import { watchForLimits } from "./sandbox-exit.ts";
import type { ResourceLimits } from "./sandbox-limits.ts";
import { killStrays, type StrayMarks } from "./stray-processes.ts";

/** An engine's JSON messages are far shorter. */
const MAX_READ_LINE_LENGTH = 1024 * 1024;
/** How long the output of a command that has ended may stay open before somebody is taken to hold it. */
const OUTPUT_CLOSES_WITHIN_MS = 250;

export interface Command {
  /** Absolute path of the binary; no shell is involved. */
  readonly binary: string;
  readonly args: readonly string[];
  readonly directory: string;
  /** The child's whole environment, but for the mark that says whose it is. */
  readonly environment: Readonly<Record<string, string>>;
  readonly signals: EngineSignals;
  /** The longest line that is read whole; what is beyond is dropped. */
  readonly maxLineLength?: number;
  /** Takes stdout as bytes, in place of `read`. When it fails, the command finds its stdout closed. */
  readonly stdout?: Writable;
  /** Whether it may say what it likes, and so end in its own way, when this process is killed. */
  readonly outlivesService?: boolean;
  /** Absent: no limits, and the service's own user and network. */
  readonly sandbox?: CommandSandbox;
  /** The piece of work that the command is part of, unique in this process. */
  readonly work?: string;
}

export interface Exit {
  readonly code: number | null;
  /** The signal that ended it, such as SIGKILL. */
  readonly signal: string | null;
  /** Where it ran, and whether there was no space left when it had failed. */
  readonly directory: string;
  readonly directoryFull: boolean;
  readonly limits?: ResourceLimits;
  /** The limit that it said it had reached when it ended without success. */
  readonly reached?: EngineFailure;
}

/**
 * Runs a command in its sandbox and in a process group of its own, and streams what `read` makes of its output, line by
 * line, from both streams.
 *
 * `signals.interrupt` sends SIGINT to the command only: it stops its own children in its own order. `signals.kill`
 * kills the whole group. When the command has ended, whatever it left running in the group is killed too, and so is
 * whoever left the group with its output in hand. Leaving the generator early interrupts the command and waits for it.
 * If this process is killed, its guardian ends the command.
 */
export async function* run<T>(command: Command, read: (output: OutputLine) => readonly T[]): AsyncGenerator<T, Exit> {
  const { signals } = command;
  const limits = watchForLimits(command);
  const child = start(command);
  limits.follow(child);
  const interrupt = () => child.kill("SIGINT");
  const kill = () => killGroup(child);
  const exited = exitOf(child, command.work);
  const lines = mergedLines(child, command);
  signals.interrupt.addEventListener("abort", interrupt);
  signals.kill.addEventListener("abort", kill);
  if (signals.interrupt.aborted) interrupt();
  if (signals.kill.aborted) kill();
  let ended = false;
  try {
    const outputs: AsyncIterable<OutputLine> = lines.iterator({ destroyOnReturn: false });
    for await (const output of outputs) {
      limits.hear(output);
      yield* read(output);
    }
    ended = true;
    return await limits.explain(await exited);
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

function start({ binary, args, directory, environment, sandbox, outlivesService, work = "" }: Command): ChildProcess {
  const { file, args: words, ...user } = confine(binary, args, sandbox);
  const child = spawn(file, words, {
    cwd: directory,
    env: { ...environment, [ENGINE_MARK]: engineMark(work) },
    detached: true,
    shell: false,
    stdio: ["ignore", "pipe", "pipe"],
    ...user,
  });
  if (child.pid !== undefined) child.once("exit", guard(child.pid));
  if (child.pid !== undefined && outlivesService) child.once("exit", holdOutput(child));
  return child;
}

/** Rejects when the binary cannot be started. Children that outlive the command are killed, so its pipes close. */
function exitOf(child: ChildProcess, work: string | undefined): Promise<Pick<Exit, "code" | "signal">> {
  const outputs = outputsOf(child);
  const exited = new Promise<Pick<Exit, "code" | "signal">>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      killGroup(child);
      void freeOutputs(child, { files: outputs, ...(work !== undefined && { environment: workVariable(work) }) });
      resolve({ code, signal });
    });
  });
  exited.catch(() => undefined);
  return exited;
}

/** What the command's output streams are called under /proc, by which whoever else holds them is found. */
function outputsOf({ pid }: ChildProcess): string[] {
  if (pid === undefined) return [];
  try {
    return [1, 2].map((descriptor) => readlinkSync(`/proc/${pid}/fd/${descriptor}`));
  } catch {
    return [];
  }
}

/** An output that a process outside the group holds would never end, and neither would the reading of it. */
async function freeOutputs(child: ChildProcess, holders: StrayMarks): Promise<void> {
  const closed = new Promise<boolean>((resolve) => child.once("close", () => resolve(true)));
  if (await Promise.race([closed, wait(OUTPUT_CLOSES_WITHIN_MS, false, { ref: false })])) return;
  await killStrays(holders);
}

function mergedLines(child: ChildProcess, { maxLineLength = MAX_READ_LINE_LENGTH, stdout }: Command): PassThrough {
  const merged = new PassThrough({ objectMode: true });
  const sources = [
    { stream: child.stdout, name: "stdout" as const },
    { stream: child.stderr, name: "stderr" as const },
  ].map(({ stream, name }) => {
    if (name === "stdout" && stream && stdout) return pipeline(stream, stdout);
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
