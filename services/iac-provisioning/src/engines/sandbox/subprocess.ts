import type { Socket } from "node:net";
import { PassThrough, type Writable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { setTimeout as wait } from "node:timers/promises";
import type { EngineFailure, EngineSignals } from "../engine.ts";
import { ENGINE_MARK, engineMark, guard, workVariable } from "./guardian.ts";
import { type End, type Launched, UNSEEN } from "./launch.ts";
import { launch } from "./launcher.ts";
import { lineSplitter, type OutputLine } from "./line-splitter.ts";
import { confine, type CommandSandbox } from "./sandbox.ts";
import { watchForLimits } from "./sandbox-exit.ts";
import type { ResourceLimits } from "./sandbox-limits.ts";
import { killStrays } from "./stray-processes.ts";

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

export interface Exit extends End {
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
  const engine = await start(command);
  if (!engine) return limits.explain(UNSEEN);
  const { pid } = engine;
  limits.follow(engine);
  let runs = true;
  const interrupt = () => runs && signal(pid, "SIGINT");
  const kill = () => signal(-pid, "SIGKILL");
  const exited = engine.ended.then((end) => {
    runs = false;
    kill();
    return end;
  });
  const lines = mergedLines(engine, command);
  const freed = freeOutputs(engine, exited, command.work);
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
    // Until then it looks for processes of this work, and the next command would be one of them.
    await freed;
    signals.interrupt.removeEventListener("abort", interrupt);
    signals.kill.removeEventListener("abort", kill);
  }
}

/** Rejects when the binary can't be started; undefined when nobody knows whether it was, and then it no longer runs. */
async function start(command: Command): Promise<Launched | undefined> {
  const { binary, args, directory, environment, sandbox, outlivesService = false, work = "" } = command;
  const { args: words, ...confined } = confine(binary, args, sandbox);
  const env = { ...environment, [ENGINE_MARK]: engineMark(work) };
  const engine = await launch({ ...confined, args: words, cwd: directory, env, holds: outlivesService });
  if (!engine) await killStrays({ environment: workVariable(work) });
  else void engine.ended.then(guard(engine.pid));
  return engine;
}

/**
 * Kills the children that outlive the command with its output in hand, outside of its group: an output that somebody
 * holds would never end, and neither would the reading of it.
 */
async function freeOutputs({ stdout, stderr, files }: Launched, exited: Promise<End>, work?: string): Promise<void> {
  const closed = Promise.all([stdout, stderr].map(isClosed));
  await exited;
  if (await Promise.race([closed, wait(OUTPUT_CLOSES_WITHIN_MS, false, { ref: false })])) return;
  await killStrays({ files, ...(work !== undefined && { environment: workVariable(work) }) });
}

function isClosed(stream: Socket): Promise<boolean> {
  return new Promise((resolve) => stream.once("close", () => resolve(true)));
}

function mergedLines(
  { stdout, stderr }: Launched,
  { maxLineLength = MAX_READ_LINE_LENGTH, stdout: bytes }: Command,
): PassThrough {
  const merged = new PassThrough({ objectMode: true });
  const sources = [
    { stream: stdout, name: "stdout" as const },
    { stream: stderr, name: "stderr" as const },
  ].map(({ stream, name }) => {
    if (name === "stdout" && bytes) return pipeline(stream, bytes);
    const splitter = lineSplitter(name, maxLineLength);
    stream.once("error", () => splitter.end());
    stream.pipe(splitter).pipe(merged, { end: false });
    return finished(splitter);
  });
  void Promise.allSettled(sources).then(() => merged.end());
  return merged;
}

/** To a process, or to a whole group by its negative number. */
function signal(pid: number, name: "SIGINT" | "SIGKILL"): void {
  try {
    process.kill(pid, name);
  } catch {
    // None of them is left.
  }
}
