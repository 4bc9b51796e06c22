import { statfs } from "node:fs/promises";
import { availableParallelism } from "node:os";
import type { EngineFailure } from "../engine.ts";
import type { OutputLine } from "./line-splitter.ts";
import type { End, Launched } from "./launch.ts";
import { oomKills } from "./memory-pressure.ts";
import { cpuSeconds } from "./process-identity.ts";
import {
  END_UNSEEN,
  limitReached,
  MACHINE_OUT_OF_MEMORY,
  tellsOfFullDisk,
  workDirectoryFull,
} from "./sandbox-failure.ts";
import type { Command, Exit } from "./subprocess.ts";

/** Less free space than this is none. */
const FULL_BELOW_BYTES = 256 * 1024;
/** A process that doesn't catch what tells it of its limit dies of it without a word. */
const LIMIT_SIGNALS: readonly (string | null)[] = ["SIGXCPU", "SIGXFSZ"];

/** How often it is looked how much processor time a command has used. */
const LOOK_EVERY_MS = 1_000;

/** Learns, while a command runs, what of its surroundings may be why it fails. */
export interface LimitWatch {
  /** Looks at the processor time of the command, until it ends. */
  follow(engine: Launched): void;
  hear(output: OutputLine): void;
  explain(end: End): Promise<Exit>;
}

/** Begins to watch; before the command is started. */
export function watchForLimits({ directory, sandbox, signals }: Command): LimitWatch {
  const limits = sandbox?.limits;
  const killsBefore = oomKills();
  let told: EngineFailure | undefined;
  let used = { seconds: 0, at: performance.now() };
  return {
    follow({ pid, ended }) {
      if (!limits) return;
      const timer = setInterval(() => {
        used = { seconds: cpuSeconds(pid) ?? used.seconds, at: performance.now() };
      }, LOOK_EVERY_MS).unref();
      void ended.then(() => clearInterval(timer));
    },
    hear({ stream, line }) {
      if (stream !== "stderr") return;
      told ??= tellsOfFullDisk(line) ? workDirectoryFull(directory) : limitReached(line, limits);
    },
    async explain(end) {
      const exit: Exit = { ...end, directory, directoryFull: false, ...(limits && { limits }) };
      if (end.code === 0) return exit;
      if (end.unseen) return { ...exit, reached: END_UNSEEN };
      const reached = wasKilled(end) ? await whyKilled() : (limitOf(end) ?? told);
      return { ...exit, directoryFull: await isFull(directory), ...(reached && { reached }) };
    },
  };

  function wasKilled({ code, signal }: End): boolean {
    return (signal === "SIGKILL" || code === KILLED_IN_SHELL) && !signals.kill.aborted;
  }

  /** The kernel doesn't say why it killed; what is none of this was somebody's doing. */
  async function whyKilled(): Promise<EngineFailure | undefined> {
    if ((await oomKills()) > (await killsBefore)) return MACHINE_OUT_OF_MEMORY;
    const since = ((performance.now() - used.at) / 1_000) * availableParallelism();
    return limits && used.seconds + since >= limits.cpuSeconds ? limitReached("SIGXCPU", limits) : undefined;
  }

  function limitOf({ signal }: End): EngineFailure | undefined {
    return LIMIT_SIGNALS.includes(signal) ? limitReached(signal ?? "", limits) : undefined;
  }
}

async function isFull(directory: string): Promise<boolean> {
  const space = await statfs(directory).catch(() => undefined);
  return (
    space !== undefined && (space.bavail * space.bsize < FULL_BELOW_BYTES || (space.files > 0 && space.ffree === 0))
  );
}

/** As a shell that wraps the engine tells of it: 128 and SIGKILL's number. */
const KILLED_IN_SHELL = 137;
