import type { Diagnostic } from "../engine-event.ts";
import type { EngineFailure } from "../engine.ts";
import type { ResourceLimits } from "./sandbox-limits.ts";
import type { Exit } from "./subprocess.ts";

const FULL = /no space left on device|disk quota exceeded/i;

/** What a shell says of it; `SIGXCPU` is the signal's own name. */
const PROCESSOR_TIME = /SIGXCPU|CPU time limit exceeded/i;

/** What the kernel, Go's runtime and shells say when a limit of the sandbox is reached. */
const REACHED: readonly Reached[] = [
  {
    sign: PROCESSOR_TIME,
    failure: ({ cpuSeconds }) => ({
      code: "LIMIT_EXCEEDED",
      message: `a process of the engine used up its ${cpuSeconds} s of processor time: raise ENGINE_CPU_SECONDS, or have the program do less`,
    }),
  },
  {
    sign: /SIGXFSZ|file size limit exceeded|file too large/i,
    failure: ({ fileMb }) => ({
      code: "LIMIT_EXCEEDED",
      message: `the engine wrote a file larger than ${fileMb} MB: raise ENGINE_FILE_MB, or have the program write less`,
    }),
  },
  {
    sign: /failed to create new OS thread|cannot fork|resource temporarily unavailable/i,
    failure: ({ maxProcesses }) => ({
      code: "LIMIT_EXCEEDED",
      message: `the engines have as many processes and threads as their user may have, ${maxProcesses}: raise ENGINE_MAX_PROCESSES, or lower EXECUTOR_CONCURRENCY`,
    }),
  },
  {
    sign: /fatal error: .*out of memory|runtime: out of memory|cannot allocate memory/i,
    failure: ({ memoryMb }) => ({
      code: "OOM_KILLED",
      message: `a process of the engine needed more than its ${memoryMb} MB of memory: raise ENGINE_MEMORY_MB, or split the program`,
    }),
  },
];

/** The kernel's own verdict, when it chose the engine to free memory. */
export const MACHINE_OUT_OF_MEMORY: EngineFailure = {
  code: "OOM_KILLED",
  message:
    "the engine was killed because this machine, or its container, ran out of memory: give it more, or lower ENGINE_MEMORY_MB or EXECUTOR_CONCURRENCY",
};

/** Of a command whose launcher was killed: it ran on, but its parent alone is told how it ended. */
export const END_UNSEEN: EngineFailure = {
  code: "ENGINE_ERROR",
  message:
    "the process that starts engines was killed while the engine ran, so nobody saw how the engine ended: find out what killed it, as a machine out of memory does, and run it again",
};

export function workDirectoryFull(directory: string): EngineFailure {
  const message = `no space left in the work directory: ${directory}: free space or set WORK_DIR to a larger place`;
  return { code: "WORK_DIRECTORY_FULL", message };
}

/** The limit that a line of text tells of, where there are limits. */
export function limitReached(text: string, limits: ResourceLimits | undefined): EngineFailure | undefined {
  return limits && REACHED.find(({ sign }) => sign.test(text))?.failure(limits);
}

export function tellsOfFullDisk(text: string): boolean {
  return FULL.test(text);
}

/**
 * Why the sandbox ended a command: a limit, memory, or the work directory's space. Undefined when it was something
 * else. A full disk that a resource tells of may be another machine's, so then it counts only if this one's is full.
 */
export function sandboxFailure(exit: Exit, diagnostics: readonly Diagnostic[]): EngineFailure | undefined {
  if (exit.code === 0) return undefined;
  if (exit.reached) return exit.reached;
  for (const { severity, summary, detail, address } of diagnostics) {
    if (severity !== "error") continue;
    const text = `${summary}: ${detail}`;
    if (tellsOfFullDisk(text) && (address === undefined || exit.directoryFull))
      return workDirectoryFull(exit.directory);
    const reached = limitReached(text, exit.limits);
    if (reached) return { ...reached, ...(address !== undefined && { address }) };
  }
  return undefined;
}

/**
 * Whether the CLI came to its own end, and so said and wrote all that it had to: it exits with 0 or 1, whatever became
 * of its work. A crash, a limit or a kill gives another code, or a signal.
 */
export function endedByItself({ code }: Exit): boolean {
  return code === 0 || code === 1;
}

interface Reached {
  sign: RegExp;
  failure: (limits: ResourceLimits) => EngineFailure;
}
